#include "sim/network/fair_share_network.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "sim/base/check.h"
#include "sim/network/cluster_links.h"
#include "sim/network/fair_share.h"
#include "sim/network/traffic.h"

namespace hdpsim {
namespace {

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

FairShareNetwork::FairShareNetwork(const ClusterSpec& cluster, const LinkEfficiency& efficiency)
    : links_(cluster, efficiency), shares_(idle_network(links_)) {}

FlowId FairShareNetwork::add(const Route& route, Bandwidth cap, double weight) {
  HDPSIM_CHECK(cap > Bandwidth{} && route.links.size() > 0, "a flow of {} B/s over {} links", cap.bytes_per_second(),
               route.links.size());
  loads_.clear();
  for (const auto& [link, share] : route.binding_links()) {
    loads_.push_back({static_cast<FairShare::Link>(link.index()), share});
  }
  const double limit =
      cap < route.alone ? static_cast<double>(cap.bytes_per_second()) : std::numeric_limits<double>::infinity();
  return FlowId(shares_.add_coupled(loads_, limit, weight));
}

FlowId FairShareNetwork::add(std::span<const FairShare::Load> part, Bandwidth cap) {
  return FlowId(shares_.add_coupled(part, static_cast<double>(cap.bytes_per_second())));
}

void FairShareNetwork::remove(FlowId flow) {
  shares_.remove(static_cast<FairShare::Variable>(flow.index()));
}

Bandwidth FairShareNetwork::rate(FlowId flow) const {
  const double rate = shares_.rate(static_cast<FairShare::Variable>(flow.index()));
  // At least one byte per second, so that everything ends.
  return Bandwidth::bytes_per_second(std::max<std::int64_t>(1, static_cast<std::int64_t>(rate)));
}

void FairShareNetwork::take_changed(std::vector<FlowId>& changed) {
  shares_.take_changed(changed_);
  changed.clear();
  for (const FairShare::Variable flow : changed_) changed.emplace_back(flow);
}

bool FairShareNetwork::is_private(const Route& route) const {
  const auto used = route.binding_links();
  return std::all_of(used.begin(), used.end(), [&](const RouteLink& one) { return links_.has_one_owner(one.link); });
}

}  // namespace

std::unique_ptr<NetworkModel> make_fair_share_network(const ClusterSpec& cluster, const LinkEfficiency& efficiency) {
  return std::make_unique<FairShareNetwork>(cluster, efficiency);
}

}  // namespace hdpsim
