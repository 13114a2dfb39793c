#pragma once

#include <cstddef>
#include <cstdint>

namespace hdpsim {

/// How the queries of a group's ranks meet the keys and values of all of them. Each has a SharingForm
/// (sim/model/sharing_form.h), a lowering (sim/program/impl/group_lowering.h) and rules of the executor
/// (kernels/exec/impl/executed_sharing.h), which do not compile without it.
enum class KeyExchange : std::uint8_t {
  ring,        ///< Keys and values pass from rank to rank and overlap with attention to those before.
  all_gather,  ///< Every rank gathers all keys and values first (Llama 3, 2024, section 3.3.2).
  /// Ranks trade tokens for heads before attention and back behind it (DeepSpeed-Ulysses, Jacobs et al. 2023). Where a
  /// group has more ranks than may trade, a ring joins those that do (USP, Fang and Zhao 2024).
  all_to_all,
  group_cast,  ///< Every rank first gets the keys and values that its queries see, and no others (MagiAttention, 2025).
  /// As `ring`, but in backward the queries pass on, with the gradients of outputs, and keys and values stay
  /// (BurstEngine, Sun et al. 2025, arXiv 2509.19836).
  query_ring,
  /// Queries go, with the keys and values that they see, to the ranks that compute their attention (DistCA, Zhuang et
  /// al. 2025). Plans ask for it by TokenCut::served, studies cannot. The last one.
  servers,
};
inline constexpr std::size_t key_exchanges = static_cast<std::size_t>(KeyExchange::servers) + 1;

/// Which tokens of a micro-batch each rank of its group holds; sim/plan/group_cut.h has the rules.
enum class TokenCut : std::uint8_t {
  per_document,  ///< Every span over all ranks, with equal attention for each.
  per_pack,      ///< All spans together as if they were one.
  dispatch,      ///< Chunks of all spans together, dealt by their attention.
  served,        ///< All spans together in two halves, each in consecutive parts; attention is served (served_cut.h).
};

}  // namespace hdpsim
