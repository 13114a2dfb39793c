#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hdpsim {

enum class CollectiveKind { all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send_recv };
inline constexpr std::size_t collective_kinds = 6;
/// The name of the nccl-tests program: all_reduce, all_gather, reduce_scatter, broadcast, alltoall, sendrecv.
[[nodiscard]] std::string_view collective_name(CollectiveKind kind);
/// busbw / algbw as nccl-tests defines it: 2 (n-1)/n, (n-1)/n or 1.
[[nodiscard]] double bus_factor(CollectiveKind kind, std::int64_t ranks);

/// The pattern of sends and receives of a collective. The algorithms, their names and what they do are in one table,
/// impl/algorithms.h; elsewhere an algorithm is handed on, compared and named. The value 0 is the ring.
enum class CollectiveAlgorithm : std::uint8_t;
[[nodiscard]] std::string_view algorithm_name(CollectiveAlgorithm algorithm);
[[nodiscard]] std::optional<CollectiveAlgorithm> find_algorithm(std::string_view name);
/// The algorithms between which NCCL has a choice, in the order of the table: messages that have none are direct.
[[nodiscard]] std::vector<CollectiveAlgorithm> choosable_algorithms();

/// NCCL's protocols: how data and the notice of its arrival cross a link.
enum class Protocol { ll, ll128, simple };
inline constexpr std::size_t protocols = 3;
[[nodiscard]] std::string_view protocol_name(Protocol protocol);
[[nodiscard]] std::optional<Protocol> find_protocol(std::string_view name);
/// Bytes on the wire per byte of data: LL sends a flag of 4 bytes with each 4 bytes, LL128 one of 8 with each 120.
[[nodiscard]] double wire_bytes(Protocol protocol);

}  // namespace hdpsim
