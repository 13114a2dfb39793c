#pragma once

#include <vector>

#include "sim/network/collective_plan.h"

namespace hdpsim {

/// The longest way through a collective, in messages one after the other.
struct Steps {
  std::size_t inside = 0;   ///< Within a node.
  std::size_t between = 0;  ///< From node to node.
};

/// Collects the flows of a plan part by part. Sums are kept by link: nothing is stored per message.
class CollectivePlanBuilder {
 public:
  /// `flows`: a zero for each link, and so again when the plan is finished.
  CollectivePlanBuilder(const ClusterLinks& links, PlanGrain grain, std::vector<double>& flows);

  /// Flows over the route from one device to another.
  void send(DeviceId from, DeviceId to, double flows = 1);
  /// The route from one device to another, for loads by link; its latency counts as a message's.
  Route watch(DeviceId from, DeviceId to);
  /// Every member of a node sends to and receives from the NVSwitch (checked: there is one).
  void pass_nvswitch(std::span<const DeviceId> members, double out, double in);
  /// Flows over a single link.
  void load(LinkId link, double flows);
  /// From each of the devices, no two of a node, to each other.
  void send_all_pairs(std::span<const DeviceId> devices, double flows);
  /// What came since the last call is a part, in the grain of parts.
  void end_part();
  /// The plan; its latency is that of the steps, each as long as the longest message that was sent.
  [[nodiscard]] CollectivePlan finish(double bytes_per_flow, const Steps& steps);

  [[nodiscard]] const ClusterLinks& links() const { return links_; }
  [[nodiscard]] PlanGrain grain() const { return grain_; }

 private:
  void emit();

  const ClusterLinks& links_;
  PlanGrain grain_;
  std::vector<double>& flows_;  ///< By link, of the part that is being built.
  std::vector<FairShare::Link> touched_;
  CollectivePlan plan_;
  Duration inside_;  ///< The longest message.
  Duration between_;
};

}  // namespace hdpsim
