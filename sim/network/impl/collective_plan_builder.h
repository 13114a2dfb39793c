#pragma once

#include <vector>

#include "sim/network/collective_plan.h"

namespace hdpsim {

/// The longest path through a collective, in sequential messages.
struct Steps {
  std::size_t inside = 0;   ///< Within a node.
  std::size_t between = 0;  ///< Between nodes.
};

/// Collects the flows of a plan part by part. Sums are kept per link: nothing is stored per message.
class CollectivePlanBuilder {
 public:
  CollectivePlanBuilder(const ClusterLinks& links, PlanGrain grain);
  CollectivePlanBuilder(CollectivePlanBuilder&&) noexcept = default;
  ~CollectivePlanBuilder();

  /// Adds flows over the route from one device to another.
  void send(DeviceId from, DeviceId to, double flows = 1);
  /// The route from one device to another, for loads by link; its latency counts as that of a message.
  Route watch(DeviceId from, DeviceId to);
  /// Adds the flows of every member of a node to and from the NVSwitch (checked: there is one).
  void pass_nvswitch(std::span<const DeviceId> members, double out, double in);
  /// Adds flows over a single link.
  void load(LinkId link, double flows);
  /// Adds flows from each of the devices, no two in one node, to each other one.
  void send_all_pairs(std::span<const DeviceId> devices, double flows);
  /// With PlanGrain::parts, closes a part: the flows since the last call.
  void end_part();
  /// The plan; its latency is that of the steps, each with the latency of the longest message that was sent.
  [[nodiscard]] CollectivePlan finish(double bytes_per_flow, const Steps& steps);

  [[nodiscard]] const ClusterLinks& links() const { return links_; }
  [[nodiscard]] PlanGrain grain() const { return grain_; }

 private:
  void emit();

  const ClusterLinks& links_;
  PlanGrain grain_;
  std::vector<double> flows_;  ///< By link: flows of the part that is being built.
  std::vector<FairShare::Link> touched_;
  CollectivePlan plan_;
  Duration inside_;  ///< Latency of the longest message.
  Duration between_;
};

}  // namespace hdpsim
