#include "sim/analysis/link_load.h"

#include <algorithm>
#include <tuple>

#include "sim/engine/priced_program.h"

namespace hdpsim {
namespace {

std::vector<LinkId> busiest(const Timeline& timeline, const NetworkModel& network, std::size_t most) {
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < timeline.links.bytes.size(); ++i) {
    if (timeline.links.bytes[i].count() > 0) links.emplace_back(i);
  }
  const auto seconds = [&](LinkId link) {
    return static_cast<double>(timeline.links.as_messages[link.index()].count()) /
           static_cast<double>(network.link_rate(link).bytes_per_second());
  };
  const auto end = links.begin() + static_cast<std::ptrdiff_t>(std::min(most, links.size()));
  std::partial_sort(links.begin(), end, links.end(),
                    [&](LinkId a, LinkId b) { return std::tuple(-seconds(a), a) < std::tuple(-seconds(b), b); });
  links.erase(end, links.end());
  return links;
}

/// Sums rates that each last for an interval, in constant time per interval.
class RateProfile {
 public:
  RateProfile(TimeWindow window, std::size_t stretches)
      : from_(window.from.since_start().seconds()),
        length_((window.to - window.from).seconds() / static_cast<double>(stretches)),
        partial_(stretches + 1),
        steps_(stretches + 1) {}

  void add(Instant begin, Instant end, double rate) {
    raise(begin, rate);
    raise(end, -rate);
  }

  /// The mean rate of every part of the window.
  [[nodiscard]] std::vector<double> means() const {
    std::vector<double> means(partial_.size() - 1);
    double level = 0;
    for (std::size_t i = 0; i < means.size(); ++i) {
      means[i] = level + partial_[i];
      level += steps_[i];
    }
    return means;
  }

 private:
  // Raises the rate by `by` from `at` on: for a part of one interval, and for all after it.
  void raise(Instant at, double by) {
    const double last = static_cast<double>(partial_.size() - 1);
    const double place = std::clamp((at.since_start().seconds() - from_) / length_, 0.0, last);
    const auto stretch = static_cast<std::size_t>(place);
    partial_[stretch] += by * (static_cast<double>(stretch + 1) - place);
    steps_[stretch] += by;
  }

  double from_;
  double length_;
  std::vector<double> partial_;
  std::vector<double> steps_;
};

}  // namespace

std::vector<LinkLoad> link_loads(const Program& program, const Timeline& timeline, const Machine& machine,
                                 TimeWindow window, std::size_t most, std::size_t stretches) {
  const std::vector<LinkId> links = busiest(timeline, *machine.network, most);
  if (links.empty() || window.to <= window.from) return {};
  std::vector<std::size_t> place(timeline.links.bytes.size(), links.size());
  for (std::size_t i = 0; i < links.size(); ++i) place[links[i].index()] = i;
  std::vector<RateProfile> profiles(links.size(), RateProfile(window, stretches));
  std::vector<double> left;  // what goes around no ring, as messages
  for (const LinkId link : links) left.push_back(static_cast<double>(timeline.links.as_messages[link.index()].count()));
  const Pipeline& pipeline = program.pipeline();
  for (std::size_t p = 0; p < pipeline.passes(); ++p) {
    const PassId pass(p);
    const MicroBatch& micro_batch = pipeline.micro_batch(pass);
    const auto& [begin, end] = timeline.interval(pass);
    if (micro_batch.group.size() < 2 || end <= begin) continue;
    const Bytes bytes = program.pass(pass).sent_around_ring();
    const double rate = static_cast<double>(bytes.count()) / (end - begin).seconds();
    for (const Hop& hop : ring_hops(program, pass, machine)) {
      for (const HopRoute& part : hop.routes) {
        for (const auto& [link, share] : part.route.binding_links()) {
          const std::size_t own = place[link.index()];
          if (own == links.size()) continue;
          profiles[own].add(begin, end, rate * part.share * share);
          left[own] -= static_cast<double>(bytes.count()) * part.share * share;
        }
      }
    }
  }
  std::vector<LinkLoad> loads;
  const double window_s = (window.to - window.from).seconds();
  for (std::size_t i = 0; i < links.size(); ++i) {
    profiles[i].add(window.from, window.to, std::max(0.0, left[i]) / window_s);
    LinkLoad& load = loads.emplace_back(LinkLoad{machine.network->link_name(links[i]), profiles[i].means()});
    const auto full = static_cast<double>(machine.network->link_rate(links[i]).bytes_per_second());
    for (double& share : load.shares) share = std::max(0.0, share / full);  // rounding may leave a value below zero
  }
  return loads;
}

}  // namespace hdpsim
