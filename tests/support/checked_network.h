#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/network/network_model.h"
#include "tests/support/water_filling.h"

namespace hdpsim::tests {

/// A network that is checked while a simulation uses it: whenever its changes are asked for, no link may be above its
/// rate, every flow must have its cap or a full link on which no flow has more, and every flow whose rate has changed
/// must be reported. Throws a std::logic_error if that does not hold.
class CheckedNetwork final : public NetworkModel {
 public:
  /// Checks every `interval`-th state.
  explicit CheckedNetwork(NetworkModel& network, std::size_t interval = 1)
      : network_(network), interval_(interval), capacities_(network.link_count()) {
    for (std::size_t link = 0; link < capacities_.size(); ++link) {
      capacities_[link] = static_cast<double>(network.link_rate(LinkId(link)).bytes_per_second());
    }
  }

  [[nodiscard]] Route route(DeviceId from, DeviceId to) const override { return network_.route(from, to); }
  [[nodiscard]] std::vector<Route> routes_by_all_nics(DeviceId from, DeviceId to) const override {
    return network_.routes_by_all_nics(from, to);
  }
  FlowId add(const Route& route, Bandwidth cap, double weight) override {
    const FlowId id = network_.add(route, cap, weight);
    SharedFlow flow;
    for (const auto& [link, share] : route.binding_links()) {
      flow.links.push_back(static_cast<std::uint32_t>(link.index()));
      flow.shares.push_back(share);
    }
    flow.weight = weight;
    if (cap < route.alone) flow.cap = static_cast<double>(cap.bytes_per_second());
    flows_[id] = {std::move(flow), Bandwidth{}};
    return id;
  }
  FlowId add(std::span<const FairShare::Load>, Bandwidth) override {
    throw std::logic_error("coupled flows cannot be watched");
  }
  void remove(FlowId flow) override {
    network_.remove(flow);
    flows_.erase(flow);
  }
  [[nodiscard]] Bandwidth rate(FlowId flow) const override { return network_.rate(flow); }
  void take_changed(std::vector<FlowId>& changed) override {
    network_.take_changed(changed);
    for (const FlowId id : changed) flows_.at(id).told = network_.rate(id);
    if (!changed.empty() && states_++ % interval_ == 0) check();
  }
  [[nodiscard]] bool is_private(const Route& route) const override { return network_.is_private(route); }
  [[nodiscard]] std::string link_name(LinkId link) const override { return network_.link_name(link); }
  [[nodiscard]] Bandwidth link_rate(LinkId link) const override { return network_.link_rate(link); }
  [[nodiscard]] std::size_t link_count() const override { return network_.link_count(); }

  /// The number of checked states.
  [[nodiscard]] std::size_t checks() const { return checks_; }

 private:
  struct Watched {
    SharedFlow flow;
    Bandwidth told;
  };

  void check() {
    ++checks_;
    std::vector<SharedFlow> flows;
    std::vector<double> rates;
    for (const auto& [id, watched] : flows_) {
      const Bandwidth rate = network_.rate(id);
      if (rate != watched.told) throw std::logic_error(fmt::format("flow {} has changed untold", id.index()));
      flows.push_back(watched.flow);
      rates.push_back(static_cast<double>(rate.bytes_per_second()));
    }
    // Rates are whole B/s, which a level, rate / weight, has multiplied.
    double least_weight = 1;
    for (const SharedFlow& flow : flows) least_weight = std::min(least_weight, flow.weight);
    const std::string problem = why_unfair(capacities_, flows, rates, {.relative = 1e-9, .per_flow = 1 / least_weight});
    if (!problem.empty()) throw std::logic_error(problem);
  }

  NetworkModel& network_;
  std::size_t interval_;
  std::size_t states_ = 0;
  std::size_t checks_ = 0;
  std::vector<double> capacities_;
  std::map<FlowId, Watched> flows_;
};

}  // namespace hdpsim::tests
