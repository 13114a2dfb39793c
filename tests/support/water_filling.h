#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace hdpsim::tests {

/// A flow, or `flows` equal ones, over links that others use as well.
struct SharedFlow {
  std::vector<std::uint32_t> links;
  double cap = std::numeric_limits<double>::infinity();  ///< B/s of each flow.
  double weight = 1;
  double flows = 1;
  std::vector<double> shares = {};  ///< By link: the share of its rate that crosses it. Empty: all of it.

  [[nodiscard]] double share(std::size_t hop) const { return shares.empty() ? 1 : shares[hop]; }
};

/// The level, rate / weight, of the open flows of each link at which it is full.
inline std::vector<double> full_at(const std::vector<double>& capacities, const std::vector<SharedFlow>& flows,
                                   const std::vector<double>& rates, const std::vector<bool>& open) {
  std::vector<double> left = capacities;
  std::vector<double> weight(capacities.size());
  for (std::size_t f = 0; f < flows.size(); ++f) {
    for (std::size_t hop = 0; hop < flows[f].links.size(); ++hop) {
      const std::uint32_t link = flows[f].links[hop];
      const double on_link = flows[f].flows * flows[f].share(hop);
      (open[f] ? weight[link] : left[link]) += open[f] ? flows[f].weight * on_link : -rates[f] * on_link;
    }
  }
  std::vector<double> levels(capacities.size(), std::numeric_limits<double>::infinity());
  for (std::size_t link = 0; link < levels.size(); ++link) {
    if (weight[link] > 0) levels[link] = std::max(0.0, left[link]) / weight[link];
  }
  return levels;
}

/// Max-min fair rates by progressive filling, as in textbooks and without regard to cost: all open flows rise until a
/// link is full or a cap is reached, and the flows that it limits are frozen. Shares no code with FairShare. O(flows x
/// hops) per round and as many rounds as flows.
inline std::vector<double> water_filling(const std::vector<double>& capacities, const std::vector<SharedFlow>& flows) {
  constexpr double equal = 1 + 1e-13;
  std::vector<double> rates(flows.size());
  std::vector<bool> open(flows.size(), true);
  while (std::find(open.begin(), open.end(), true) != open.end()) {
    const std::vector<double> levels = full_at(capacities, flows, rates, open);
    const auto limit = [&](const SharedFlow& flow) {
      double level = flow.cap / flow.weight;
      for (const std::uint32_t link : flow.links) level = std::min(level, levels[link]);
      return level;
    };
    double lowest = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < flows.size(); ++f) lowest = open[f] ? std::min(lowest, limit(flows[f])) : lowest;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      if (!open[f] || limit(flows[f]) > lowest * equal) continue;
      rates[f] = lowest * flows[f].weight;
      open[f] = false;
    }
  }
  return rates;
}

/// Allowed deviation of rates: a share of the link's or flow's rate, plus a number of B/s for each flow of a link.
struct RateSlack {
  double relative = 1e-9;
  double per_flow = 0;
};

/// The loads of the links under given rates.
class LinkLoads {
 public:
  LinkLoads(const std::vector<double>& capacities, const std::vector<SharedFlow>& flows,
            const std::vector<double>& rates, const RateSlack& slack)
      : capacities_(capacities), slack_(slack), loads_(capacities.size()), tops_(loads_), counts_(loads_) {
    for (std::size_t f = 0; f < flows.size(); ++f) {
      for (std::size_t hop = 0; hop < flows[f].links.size(); ++hop) {
        const std::uint32_t link = flows[f].links[hop];
        loads_[link] += rates[f] * flows[f].flows * flows[f].share(hop);
        tops_[link] = std::max(tops_[link], rates[f] / flows[f].weight);
        counts_[link] += flows[f].flows;
      }
    }
  }
  [[nodiscard]] double load(std::size_t link) const { return loads_[link]; }
  [[nodiscard]] bool is_overfull(std::size_t link) const {
    return loads_[link] > capacities_[link] * (1 + slack_.relative);
  }
  /// Whether the link is full and no flow on it has a level above `level`.
  [[nodiscard]] bool holds_back(std::size_t link, double level) const {
    const double slack = slack_.relative * capacities_[link] + slack_.per_flow * counts_[link];
    return loads_[link] >= capacities_[link] - slack && tops_[link] <= level * (1 + slack_.relative) + slack_.per_flow;
  }

 private:
  const std::vector<double>& capacities_;
  RateSlack slack_;
  std::vector<double> loads_;
  std::vector<double> tops_;    // the highest level
  std::vector<double> counts_;  // number of flows
};

/// Why these rates are not max-min fair; empty if they are. They are if no link carries more than its rate and every
/// flow has its cap or crosses a full link on which no flow has a higher level (Bertsekas and Gallager, Data Networks,
/// 6.5.2): this also means that no usable capacity is left over.
inline std::string why_unfair(const std::vector<double>& capacities, const std::vector<SharedFlow>& flows,
                              const std::vector<double>& rates, const RateSlack& slack = {}) {
  const LinkLoads loads(capacities, flows, rates, slack);
  for (std::size_t link = 0; link < capacities.size(); ++link) {
    if (loads.is_overfull(link)) {
      return fmt::format("link {} carries {} of {} B/s", link, loads.load(link), capacities[link]);
    }
  }
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const SharedFlow& flow = flows[f];
    if (rates[f] > flow.cap * (1 + slack.relative)) {
      return fmt::format("flow {} has {} B/s, its cap is {}", f, rates[f], flow.cap);
    }
    if (rates[f] >= flow.cap * (1 - slack.relative) - slack.per_flow) continue;
    const auto holds = [&](std::uint32_t link) { return loads.holds_back(link, rates[f] / flow.weight); };
    if (std::none_of(flow.links.begin(), flow.links.end(), holds)) {
      return fmt::format("flow {} has {} B/s and nothing holds it back", f, rates[f]);
    }
  }
  return "";
}

}  // namespace hdpsim::tests
