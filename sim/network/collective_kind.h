#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hdpsim {

enum class CollectiveKind { all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send_recv };
inline constexpr std::size_t collective_kinds = 6;
/// As nccl-tests calls its programs: all_reduce, all_gather, reduce_scatter, broadcast, alltoall, sendrecv.
[[nodiscard]] std::string_view collective_name(CollectiveKind kind);
/// busbw / algbw as nccl-tests defines it: 2 (n-1)/n, (n-1)/n or 1.
[[nodiscard]] double bus_factor(CollectiveKind kind, std::int64_t ranks);

/// Who passes what to whom: see collective_plan.h.
enum class CollectiveAlgorithm { ring, tree, nvls, nvls_tree, pat, direct, hierarchical };
[[nodiscard]] std::string_view algorithm_name(CollectiveAlgorithm algorithm);

}  // namespace hdpsim
