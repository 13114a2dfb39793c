#pragma once

#include <cstdint>
#include <vector>

#include "sim/network/collective_kind.h"

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

/// NCCL's own model of itself, with the constants that it chooses algorithm and protocol by (src/graph/tuning.cc of
/// NCCL 2.25; efficiency of NVLS as from 2.26 on): base latencies, latencies per step over NVLink, PCIe and network,
/// the shares of a link's rate that each protocol and algorithm reaches, the correction of the tree for middle sizes
/// and the plateau of the ring over several nodes.
///
/// What NCCL finds out by searching the machine's topology is here the slower of a device's NVLink and its share of the
/// NICs. Its caps by channel need that search and are left out, so are CollNet and the latency that a topology may add
/// to a network hop. NCCL has no such model of all_to_all and send_recv, which it does not choose for: `direct` is a
/// base latency, one step and the bytes over the slowest link.
class NcclModel {
 public:
  explicit NcclModel(const NcclGroup& group) : group_(group) {}

  /// All ways that NCCL has for it, in the order of algorithm and protocol. At least one.
  [[nodiscard]] std::vector<CollectiveTime> ways(CollectiveKind kind, std::int64_t bytes) const;
  /// The fastest, as NCCL chooses.
  [[nodiscard]] CollectiveTime best(CollectiveKind kind, std::int64_t bytes) const;

 private:
  [[nodiscard]] CollectiveTime ring(CollectiveKind kind, Protocol protocol, double bytes) const;
  [[nodiscard]] CollectiveTime tree(Protocol protocol, double bytes) const;
  [[nodiscard]] CollectiveTime nvls(CollectiveKind kind, double bytes) const;
  [[nodiscard]] CollectiveTime nvls_tree(double bytes) const;
  [[nodiscard]] CollectiveTime pat(double bytes) const;
  [[nodiscard]] CollectiveTime direct(CollectiveKind kind, double bytes) const;
  void append_switch_ways(std::vector<CollectiveTime>& ways, CollectiveKind kind, double bytes) const;
  [[nodiscard]] double ring_latency_us(CollectiveKind kind, Protocol protocol) const;
  [[nodiscard]] double inside_us(CollectiveAlgorithm algorithm, Protocol protocol) const;
  [[nodiscard]] double between_us(CollectiveAlgorithm algorithm, Protocol protocol) const;
  [[nodiscard]] double in_node() const;
  [[nodiscard]] double node_rate() const;
  [[nodiscard]] double link_rate() const;
  [[nodiscard]] double most_of_ll() const;
  [[nodiscard]] double nvls_share() const;

  NcclGroup group_;
};

}  // namespace hdpsim
