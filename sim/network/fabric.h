#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/network/network_model.h"

namespace hdpsim {

/// A count as an index.
[[nodiscard]] constexpr std::size_t unsigned_of(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

/// The rate of a link that is down: solvers need a rate above zero.
inline constexpr auto rate_of_down_link = Bandwidth::bytes_per_second(1);

/// A NIC, as the switches see it.
struct Port {
  std::size_t node = 0;
  std::size_t rail = 0;
};

/// The links of a fabric that a message passes, and the latency of its switches.
struct FabricPath {
  RouteLinks links;  ///< With the fabric's numbers of its links.
  Duration latency;

  void append(std::size_t link, double share = 1) { links.append({LinkId(link), share}); }
};

/// The number of flows over one link of the fabric.
struct FabricLoad {
  std::size_t link = 0;
  double flows = 0;
};

/// The switches between the NICs of different nodes and their links, one per direction; only links that can ever be a
/// bottleneck. Paths are computed or kept per switch, never per pair of devices. Deterministic: a path depends on its
/// two ends only.
class Fabric {
 public:
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  virtual ~Fabric() = default;

  /// The path between two ports of different nodes. A change of rail costs nothing here.
  [[nodiscard]] virtual FabricPath path(const Port& from, const Port& to) const = 0;
  /// False if there is no path between two rails: a message then changes rail inside the sender's node.
  [[nodiscard]] virtual bool joins_rails(std::size_t from, std::size_t to) const;

  /// The load of the links when each of these nodes (ascending) sends one flow to each other one on this rail, computed
  /// without visiting every pair. Returns no value where that is impossible.
  [[nodiscard]] virtual std::optional<std::vector<FabricLoad>> all_pairs(std::span<const std::size_t> nodes,
                                                                         std::size_t rail) const;

  [[nodiscard]] virtual std::size_t link_count() const = 0;
  [[nodiscard]] virtual Bandwidth rate(std::size_t link) const = 0;
  [[nodiscard]] virtual std::string name(std::size_t link) const = 0;
};

/// `efficiency`: the share of the physical rates that software reaches, in (0, 1].
[[nodiscard]] std::unique_ptr<Fabric> make_fabric(const ClusterSpec& cluster, double efficiency);

}  // namespace hdpsim
