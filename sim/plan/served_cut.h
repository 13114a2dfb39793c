#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/model/memory.h"
#include "sim/plan/group_cut.h"

namespace hdpsim {

/// What the ranks of a group do for each other in one half of a micro-batch under TokenCut::served: core attention
/// disaggregation (DistCA, Zhuang et al. 2025, arXiv 2510.18121), in which every rank is also an attention server. A
/// server receives queries, and the keys and values that these see, and sends attention's output back.
///
/// The pack is cut into 2N consecutive parts of equal size, the remainder one token each to the first parts. Rank r
/// holds part r in the first half and part N + r in the second one, so that no query of the first half sees a key of
/// the second: while the attention of one half is on its way, a rank computes the linear layers of the other.
struct ServedHalf {
  /// By rank the queries whose attention it computes, by document (MicroBatch::spans) and place in it.
  std::vector<std::vector<CutPiece>> attended;
  /// By rank the keys that it receives for these queries, each counted once.
  std::vector<std::int64_t> received_keys;
  std::int64_t queries = 0;  ///< The most queries that a rank sends to servers or receives as a server.
  std::int64_t keys = 0;     ///< The most keys that a rank sends to servers or receives as one.
};

/// The halves of a micro-batch with such a cut, whose moved queries must be sound. O((documents + ranks + moved) log).
[[nodiscard]] std::array<ServedHalf, 2> served_halves(const MicroBatch& micro_batch);

/// What the ranks of a micro-batch receive at most that shares in the way that its cut asks for.
[[nodiscard]] OwnExchange own_exchange_load(const MicroBatch& micro_batch, KeyExchange exchange);

/// The parts of the cut in the order of the pack, by document: what a rank holds, before any queries move.
[[nodiscard]] std::vector<std::vector<CutPiece>> served_parts(const std::vector<std::int64_t>& lengths,
                                                              std::int64_t ranks);

}  // namespace hdpsim
