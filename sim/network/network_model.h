#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/cluster/fabric_spec.h"
#include "sim/network/fair_share.h"

namespace hdpsim {

using FlowId = Id<struct FlowTag>;

/// The links that a message passes, only those that can ever bind, and the rate that it gets when it is alone on them.
struct Route {
  /// The fabric's, two NICs, and on either side four links to the NIC of another device over PCIe switches.
  static constexpr std::size_t most_links = most_fabric_hops + 2 + 8;
  std::array<LinkId, most_links> links{};
  std::size_t link_count = 0;
  Duration latency;  ///< Message start-up and hops, paid once a message.
  Bandwidth alone;   ///< min over its links.

  [[nodiscard]] std::span<const LinkId> binding_links() const { return {links.data(), link_count}; }
};

/// The network of one simulated world: which links a message takes and how flows that are under way share them.
///
/// Invariants: no link carries more than its rate; the rate of a flow alone on its links is `Route::alone`; adding a
/// flow never speeds another one up beyond what it would have alone. Deterministic: rates depend on the set of flows
/// and the order of calls only.
class NetworkModel {
 public:
  virtual ~NetworkModel() = default;

  /// Computed, never stored per pair. Two different devices.
  [[nodiscard]] virtual Route route(DeviceId from, DeviceId to) const = 0;

  /// A flow starts to use its route and never wants more than `cap` (`Route::alone` or more: no cap). What a capped
  /// flow leaves goes to the others on its links: on each link the share x solves sum of min(cap, x) = rate of the
  /// link, and a flow gets the least of its cap and its links' shares. The id of a removed flow may be used again.
  virtual FlowId add(const Route& route, Bandwidth cap) = 0;
  /// A part of a CollectivePlan starts: coupled flows that all move at one rate, which is that of the id. It has moved
  /// everything when that rate has moved CollectivePlan::bytes_per_flow x the size. A plan is under way as one such
  /// flow a part; each changes rate (take_changed) and ends (remove) as any other. Each of them never wants more than
  /// `cap`.
  virtual FlowId add(std::span<const FairShare::Load> part, Bandwidth cap) = 0;
  virtual void remove(FlowId flow) = 0;
  [[nodiscard]] virtual Bandwidth rate(FlowId flow) const = 0;
  /// Flows whose rate may have changed since the last call, in the order of their ids, each once; the list is emptied.
  /// Flows that were removed meanwhile are not in it.
  virtual void take_changed(std::vector<FlowId>& changed) = 0;

  /// True if no flow of another group can ever slow this route: every link of it belongs to the pair's own devices.
  [[nodiscard]] virtual bool is_private(const Route& route) const = 0;

  /// For reports.
  [[nodiscard]] virtual std::string link_name(LinkId link) const = 0;
  [[nodiscard]] virtual Bandwidth link_rate(LinkId link) const = 0;
  [[nodiscard]] virtual std::size_t link_count() const = 0;
};

}  // namespace hdpsim
