#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/network/collective_kind.h"

#include "sim/base/units.h"

namespace hdpsim {

enum class Protocol { ll, ll128, simple };
[[nodiscard]] std::string_view protocol_name(Protocol protocol);

/// The ranks of a collective and the links between them, one rank a device.
struct NcclGroup {
  std::int64_t ranks = 2;
  std::int64_t nodes = 1;          ///< Each holds ranks / nodes of them.
  double nvlink_bytes_per_s = 0;   ///< Per device and direction; of PCIe where a node has no NVLink.
  double network_bytes_per_s = 0;  ///< Per device and direction: its share of its NIC.
  bool has_nvlink = true;
  int compute_capability = 90;  ///< 80, 90, 100: what the protocols carry at most.
};

/// One way of doing a collective: t = latency + size / rate, `size` as nccl-tests counts it.
struct CollectiveTime {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  Protocol protocol = Protocol::simple;
  double seconds = 0;
};

/// NCCL's own model of itself, with the constants that it chooses algorithm and protocol by (src/graph/tuning.cc of NCCL
/// 2.23): base latencies, latencies per step over NVLink, PCIe and network, the shares of a link's rate that each protocol
/// reaches, the correction of the tree for small sizes and the plateau of the ring over several nodes. What NCCL finds out
/// by searching the machine's topology is here the slower of a device's NVLink and its share of the NICs.
///
/// A prior: measured lines of a profile take precedence where there are any.
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
  [[nodiscard]] CollectiveTime nvls(double bytes) const;
  [[nodiscard]] CollectiveTime pat(double bytes) const;
  [[nodiscard]] CollectiveTime direct(CollectiveKind kind, double bytes) const;
  [[nodiscard]] double link_rate() const;

  NcclGroup group_;
};

}  // namespace hdpsim
