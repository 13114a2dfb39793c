#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/group_cut.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// What the assignment of attention to servers goes by.
struct ServerRules {
  std::int64_t ranks = 1;          ///< Of the group; each is a server.
  std::int64_t query_bytes = 0;    ///< Of a token: its query and attention's output ...
  std::int64_t key_bytes = 0;      ///< ... and its key and value.
  double tolerance = 0;            ///< How much more than the mean rank a rank may attend to.
  std::int64_t tile_tokens = 128;  ///< Queries move in multiples of it, or to the end of what their holder has.
  bool as_code = false;            ///< As in the authors' code, balance_shares(), which does not follow the paper.
};

/// The queries that move to other ranks of the group, for documents of these lengths under TokenCut::served, by
/// DistCA's scheduler: each half of the pack is balanced alone. Ranks with less attention than the mean are served in
/// the order of what they lack. From ranks with more than the tolerance allows, each gets what carries the most (query,
/// key) pairs per byte that moves, as much as the one has too much and the other too little, until no rank has more.
/// O(moves x runs of queries on ranks with too much), which grows with the square of the ranks; as in the code it does
/// not.
[[nodiscard]] std::vector<ServedQueries> queries_to_move(const std::vector<std::int64_t>& lengths,
                                                         const ServerRules& rules);

/// Queries of one document that one rank holds, in one piece or two, and the rank that attends to them.
struct ServedShare {
  std::size_t holder = 0;
  std::size_t server = 0;
  std::vector<CutPiece> pieces;
  friend bool operator==(const ServedShare&, const ServedShare&) = default;
};

/// Lets ranks attend for each other as the planner of DistCA's code does (hao-ai-lab/distca at 039f2e40,
/// Planner.plan_items), which differs from the paper: each server that lacks pairs is looked at once, the most needy
/// first, and takes from the share that costs fewest bytes a pair, whoever holds it, until it lacks no more than the
/// tolerance. A share moves whole, or gives the queries in the middle of a head and a tail; what moves is a new share
/// at the end. `lengths`: of the documents. Where the original fails, for documents of an odd number of tokens, the
/// pairs that move are counted as they are. O(moves (shares of a server + offers of near prices) log shares).
void balance_shares(const std::vector<std::int64_t>& lengths, const ServerRules& rules,
                    std::vector<ServedShare>& shares);

}  // namespace hdpsim
