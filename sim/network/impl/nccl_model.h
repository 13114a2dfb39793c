#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/collective_kind.h"
#include "sim/network/impl/nccl_constants.h"

namespace hdpsim {

/// The ranks of a collective and the links between them, one rank a device.
struct NcclGroup {
  std::int64_t ranks = 2;
  std::int64_t nodes = 1;          ///< Each holds ranks / nodes of them, on average where `is_even` is false.
  bool is_even = true;             ///< Otherwise the algorithms that want as many ranks in each node are left out.
  double nvlink_bytes_per_s = 0;   ///< Per device and direction; of PCIe where a node has no NVLink.
  double network_bytes_per_s = 0;  ///< Per device and direction: its share of its NIC.
  bool has_nvlink = true;
  int compute_capability = 90;        ///< In tenths: 80 Ampere, 90 Hopper, 100 Blackwell.
  bool has_amd_hosts = false;         ///< Otherwise Intel.
  bool in_network_reduction = false;  ///< The switches between nodes add up.
  std::int64_t channels = 1;          ///< Rings side by side.

  [[nodiscard]] double in_node() const { return static_cast<double>(ranks) / static_cast<double>(nodes); }
  /// Of all NICs of a node.
  [[nodiscard]] double node_bytes_per_s() const { return network_bytes_per_s * in_node(); }
  /// All rings together: each passes every device of a node by NVLink and leaves the node by another NIC.
  [[nodiscard]] double ring_bytes_per_s() const;
  /// What the protocol LL carries at most.
  [[nodiscard]] double most_of_ll() const;
  /// NVLS is there from Hopper on, for more than two ranks of a node.
  [[nodiscard]] bool has_nvls() const { return has_nvlink && is_even && compute_capability >= 90 && ranks / nodes > 2; }
  /// Levels of a tree of the nodes below its root.
  [[nodiscard]] double levels() const;
};

/// One way of doing a collective: seconds = latency + size / rate, `size` as nccl-tests counts it. Both may depend on
/// the size.
struct CollectiveTime {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  Protocol protocol = Protocol::simple;
  double latency_s = 0;
  double bytes_per_s = 0;
  double seconds = 0;
};
[[nodiscard]] CollectiveTime nccl_time(CollectiveAlgorithm algorithm, Protocol protocol, double latency_us,
                                       double bytes_per_s, double bytes);

/// LL128 needs stores of 128 bytes to arrive whole: NVLink alone promises that.
[[nodiscard]] std::vector<Protocol> protocols_of(const NcclGroup& group);
/// Shares of the rate that NVLS reaches on the group's devices, and that an all-reduce in the switches reaches of that.
[[nodiscard]] double nvls_share(const NcclGroup& group);
[[nodiscard]] double nvls_all_reduce_share();

/// Microseconds of a step of a ring or of a tree inside a node.
[[nodiscard]] double ring_step_inside_us(const NcclGroup& group, Protocol protocol);
[[nodiscard]] double tree_step_inside_us(const NcclGroup& group, Protocol protocol);
/// The same between two nodes. Nothing hides the network where a node has one rank: a ring then waits as long as a tree.
[[nodiscard]] double ring_step_between_us(const NcclGroup& group, Protocol protocol);
[[nodiscard]] double hidden_ring_step_between_us(Protocol protocol);
[[nodiscard]] double tree_step_between_us(Protocol protocol);

/// NCCL's own model of itself, with the constants that it chooses algorithm and protocol by (nccl_constants.h): base
/// latencies, latencies per step over NVLink, PCIe and network, the shares of a link's rate that each protocol and
/// algorithm reaches, the correction of the tree for middle sizes and the plateau of the ring over several nodes. What
/// it says of an algorithm stands in that algorithm's file (algorithms.h).
///
/// What NCCL finds out by searching the machine's topology is here the slower of a device's NVLink and its share of the
/// NICs. Its caps by channel need that search and are left out, so are CollNet and the latency that a topology may add
/// to a network hop. NCCL has no such model of all_to_all and send_recv, which it does not choose for: `direct` is a
/// base latency, one step and the bytes over the slowest link.
///
/// All ways that NCCL has for a collective, in the order of algorithm and protocol. At least one.
[[nodiscard]] std::vector<CollectiveTime> nccl_ways(const NcclGroup& group, CollectiveKind kind, std::int64_t bytes);
/// The fastest of some, as NCCL chooses; at least one (checked).
[[nodiscard]] CollectiveTime fastest(const std::vector<CollectiveTime>& ways);

}  // namespace hdpsim
