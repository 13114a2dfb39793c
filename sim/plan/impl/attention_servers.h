#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"

namespace hdpsim {

/// What the assignment of attention to servers goes by.
struct ServerRules {
  std::int64_t ranks = 1;          ///< Of the group; each is a server.
  std::int64_t query_bytes = 0;    ///< Of a token: its query and attention's output ...
  std::int64_t key_bytes = 0;      ///< ... and its key and value.
  double tolerance = 0;            ///< How much more than the mean rank a rank may attend to.
  std::int64_t tile_tokens = 128;  ///< Queries move in multiples of it, or to the end of what their holder has.
};

/// The queries that move to other ranks of the group, for documents of these lengths under TokenCut::served, by
/// DistCA's scheduler: each half of the pack is balanced alone. Ranks with less attention than the mean are served in
/// the order of what they lack. From ranks with more than the tolerance allows, each gets what carries the most (query,
/// key) pairs per byte that moves, as much as the one has too much and the other too little, until no rank has more.
/// O(moves x runs of queries on ranks with too much), which grows with the square of the ranks.
[[nodiscard]] std::vector<ServedQueries> queries_to_move(const std::vector<std::int64_t>& lengths,
                                                         const ServerRules& rules);

}  // namespace hdpsim
