#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hdpsim {

enum class CollectiveKind { all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send_recv };
inline constexpr std::size_t collective_kinds = 6;
/// The name of the nccl-tests program: all_reduce, all_gather, reduce_scatter, broadcast, alltoall, sendrecv.
[[nodiscard]] std::string_view collective_name(CollectiveKind kind);
/// busbw / algbw as nccl-tests defines it: 2 (n-1)/n, (n-1)/n or 1.
[[nodiscard]] double bus_factor(CollectiveKind kind, std::int64_t ranks);

/// The pattern of sends and receives: see collective_plan.h.
enum class CollectiveAlgorithm { ring, tree, nvls, nvls_tree, pat, direct };
[[nodiscard]] std::string_view algorithm_name(CollectiveAlgorithm algorithm);
inline constexpr std::size_t collective_algorithms = 6;

/// NCCL's protocols: how data and the notice of its arrival cross a link.
enum class Protocol { ll, ll128, simple };
inline constexpr std::size_t protocols = 3;
[[nodiscard]] std::string_view protocol_name(Protocol protocol);
/// Bytes on the wire per byte of data: LL sends a flag of 4 bytes with each 4 bytes, LL128 one of 8 with each 120.
[[nodiscard]] double wire_bytes(Protocol protocol);

}  // namespace hdpsim
