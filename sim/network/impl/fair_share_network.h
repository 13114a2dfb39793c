#pragma once

#include <string>
#include <vector>

#include "sim/network/cluster_links.h"
#include "sim/network/fair_share.h"
#include "sim/network/fair_share_network.h"

namespace hdpsim {

/// The NetworkModel of a cluster on FairShare. The id of a flow is the number of its variable.
class FairShareNetwork final : public NetworkModel {
 public:
  FairShareNetwork(const ClusterSpec& cluster, const LinkEfficiency& efficiency);

  [[nodiscard]] Route route(DeviceId from, DeviceId to) const override { return links_.route(from, to); }
  [[nodiscard]] std::vector<Route> routes_by_all_nics(DeviceId from, DeviceId to) const override {
    return links_.routes_by_all_nics(from, to);
  }
  FlowId add(const Route& route, Bandwidth cap, double weight) override;
  FlowId add(std::span<const FairShare::Load> part, Bandwidth cap) override;
  void remove(FlowId flow) override;
  [[nodiscard]] Bandwidth rate(FlowId flow) const override;
  void take_changed(std::vector<FlowId>& changed) override;
  [[nodiscard]] bool is_private(const Route& route) const override;
  [[nodiscard]] std::string link_name(LinkId link) const override { return links_.name(link); }
  [[nodiscard]] Bandwidth link_rate(LinkId link) const override { return links_.rate(link); }
  [[nodiscard]] std::size_t link_count() const override { return links_.count(); }

 private:
  ClusterLinks links_;
  mutable FairShare shares_;            ///< Repairs its rates when they are queried.
  std::vector<FairShare::Load> loads_;  ///< Of the flow that is being added.
  std::vector<FairShare::Variable> changed_;
};

}  // namespace hdpsim
