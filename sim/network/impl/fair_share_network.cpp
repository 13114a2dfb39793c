#include "sim/network/impl/fair_share_network.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

std::vector<double> capacities(const ClusterLinks& links) {
  std::vector<double> rates(links.count());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    rates[i] = static_cast<double>(links.rate(LinkId(i)).bytes_per_second());
  }
  return rates;
}

}  // namespace

std::unique_ptr<NetworkModel> make_fair_share_network(const ClusterSpec& cluster, const LinkEfficiency& efficiency) {
  return std::make_unique<FairShareNetwork>(cluster, efficiency);
}

FairShareNetwork::FairShareNetwork(const ClusterSpec& cluster, const LinkEfficiency& efficiency)
    : links_(cluster, efficiency), shares_(capacities(links_)) {}

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

}  // namespace hdpsim
