#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/collective_kind.h"
#include "sim/network/impl/nccl_constants.h"

namespace hdpsim {

/// The ranks of a collective and the links between them, one rank per device.
struct NcclGroup {
  std::int64_t ranks = 2;
  std::int64_t nodes = 1;          ///< Each holds ranks / nodes ranks, on average if `is_even` is false.
  bool is_even = true;             ///< If false, algorithms that need equal nodes are not used.
  double nvlink_bytes_per_s = 0;   ///< Per device and direction; PCIe where a node has no NVLink.
  double network_bytes_per_s = 0;  ///< Per device and direction: its share of its NIC.
  bool has_nvlink = true;
  int compute_capability = 90;        ///< In tenths: 80 Ampere, 90 Hopper, 100 Blackwell.
  bool has_amd_hosts = false;         ///< Otherwise Intel.
  bool in_network_reduction = false;  ///< The switches between nodes reduce.
  std::int64_t channels = 1;          ///< Parallel rings.

  [[nodiscard]] double in_node() const { return static_cast<double>(ranks) / static_cast<double>(nodes); }
  /// The total of all NICs of a node.
  [[nodiscard]] double node_bytes_per_s() const { return network_bytes_per_s * in_node(); }
  /// The total of all rings: each passes every device of a node by NVLink, and each leaves the node by a different NIC.
  [[nodiscard]] double ring_bytes_per_s() const;
  /// The upper bound of the rate of protocol LL.
  [[nodiscard]] double most_of_ll() const;
  /// NVLS exists from Hopper on, for more than two ranks per node.
  [[nodiscard]] bool has_nvls() const { return has_nvlink && is_even && compute_capability >= 90 && ranks / nodes > 2; }
  /// Levels of a tree of the nodes, without the root.
  [[nodiscard]] double levels() const;
};

/// One algorithm and protocol for a collective: seconds = latency + max(size / rate, messages), with the size as
/// nccl-tests counts it. Latency and rate may depend on the size.
struct CollectiveTime {
  CollectiveAlgorithm algorithm = {};
  Protocol protocol = Protocol::simple;
  double latency_s = 0;
  double bytes_per_s = 0;
  double seconds = 0;
  double messages_s = 0;  ///< What the proxy of a rank takes to send and receive its messages.
};
[[nodiscard]] CollectiveTime nccl_time(CollectiveAlgorithm algorithm, Protocol protocol, double latency_us,
                                       double bytes_per_s, double bytes);

/// The protocols of a group. LL128 needs stores of 128 bytes to arrive whole, which only NVLink guarantees.
[[nodiscard]] std::vector<Protocol> protocols_of(const NcclGroup& group);
/// The share of the rate that NVLS reaches on the group's devices, and the share of that that an all-reduce in the
/// switches reaches.
[[nodiscard]] double nvls_share(const NcclGroup& group);
[[nodiscard]] double nvls_all_reduce_share();

/// Microseconds per step of a ring or of a tree inside a node.
[[nodiscard]] double ring_step_inside_us(const NcclGroup& group, Protocol protocol);
[[nodiscard]] double tree_step_inside_us(const NcclGroup& group, Protocol protocol);
/// The same between two nodes. Where a node has one rank, nothing hides the network: a ring then waits as long as a
/// tree.
[[nodiscard]] double ring_step_between_us(const NcclGroup& group, Protocol protocol);
[[nodiscard]] double hidden_ring_step_between_us(Protocol protocol);
[[nodiscard]] double tree_step_between_us(Protocol protocol);

/// NCCL's own model of itself, with the constants by which it chooses algorithm and protocol (nccl_constants.h): base
/// latencies, latencies per step over NVLink, PCIe and network, the shares of a link's rate that each protocol and
/// algorithm reaches, the correction of the tree for medium sizes and the plateau of the ring over several nodes. The
/// part about one algorithm is in the file of that algorithm (algorithms.h).
///
/// NCCL searches the topology of the machine for the rates; here the rate of all rings together is that of a device's
/// NVLink or of all NICs of its node, whichever is slower. The caps per channel need that search and are neglected, and
/// so is the latency that a topology may add to a network hop. For CollNet, links inside nodes carry up to twice the
/// rate of the NICs. NCCL has no such model of all_to_all and send_recv, for which it has no choice: `direct` is a base
/// latency, a step for each round of messages and the bytes over the slowest link. A round is what the channels have
/// room for at once, and every message between nodes passes the proxy, one thread of the host.
///
/// Returns all variants that NCCL has for a collective, in the order of algorithm and protocol. At least one. NCCL
/// chooses the fastest by this model.
[[nodiscard]] std::vector<CollectiveTime> nccl_ways(const NcclGroup& group, CollectiveKind kind, std::int64_t bytes);

}  // namespace hdpsim
