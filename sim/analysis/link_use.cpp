#include "sim/analysis/link_use.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/engine/priced_program.h"
#include "sim/network/cluster_links.h"

namespace hdpsim {
namespace {

Bytes other_bytes(const JobsTraffic& traffic, LinkId link) {
  return traffic.others.empty() ? Bytes{} : traffic.others.bytes[link.index()];
}

// How long the link is busy with what was sent over it.
double busy_s(const NetworkModel& network, LinkId link, const LinkTraffic& traffic) {
  if (traffic.empty()) return 0;
  return static_cast<double>(traffic.as_messages[link.index()].count()) /
         static_cast<double>(network.link_rate(link).bytes_per_second());
}

// The share of the time that a link is busy with the main job, next to others. Collectives that overlap do not slow
// each other where the job is alone, so that together they can need more than the whole time.
double share_of(double busy, double seconds, double others) {
  return std::min(busy / seconds, std::max(0.0, 1 - others));
}

using KindAndRate = std::pair<std::string, Bandwidth>;

LinkKindUse& kind_of(const NetworkModel& network, LinkId link, std::vector<LinkKindUse>& kinds,
                     std::map<KindAndRate, std::size_t>& places) {
  const std::string name = network.link_name(link);
  const Bandwidth rate = network.link_rate(link);
  const auto [place, is_new] = places.try_emplace({link_kind(name), rate}, kinds.size());
  if (is_new) kinds.push_back({.kind = place->first.first, .busiest = name, .rate = rate});
  return kinds[place->second];
}

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
  RateProfile(TimeWindow window, std::size_t intervals)
      : from_(window.from.since_start().seconds()),
        length_((window.to - window.from).seconds() / static_cast<double>(intervals)),
        partial_(intervals + 1),
        steps_(intervals + 1) {}

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
    const auto interval = static_cast<std::size_t>(place);
    partial_[interval] += by * (static_cast<double>(interval + 1) - place);
    steps_[interval] += by;
  }

  double from_;
  double length_;
  std::vector<double> partial_;
  std::vector<double> steps_;
};

}  // namespace

std::vector<LinkUse> busiest_links(const JobsTraffic& traffic, double seconds, const NetworkModel& network,
                                   std::size_t most) {
  struct Busy {
    double seconds;
    LinkId link;
  };
  std::vector<Busy> busy;
  for (std::size_t i = 0; i < traffic.main.bytes.size(); ++i) {
    const LinkId link(i);
    if (traffic.main.bytes[i].count() == 0) continue;
    busy.push_back({busy_s(network, link, traffic.main) + busy_s(network, link, traffic.others), link});
  }
  const auto middle = busy.begin() + static_cast<std::ptrdiff_t>(std::min(most, busy.size()));
  std::partial_sort(busy.begin(), middle, busy.end(), [](const Busy& a, const Busy& b) {
    return std::tuple(-a.seconds, a.link.index()) < std::tuple(-b.seconds, b.link.index());
  });
  std::vector<LinkUse> links;
  for (auto it = busy.begin(); it != middle; ++it) {
    const LinkId link = it->link;
    const double others = busy_s(network, link, traffic.others) / seconds;
    links.push_back({network.link_name(link), network.link_rate(link), traffic.main.bytes[link.index()],
                     share_of(busy_s(network, link, traffic.main), seconds, others), other_bytes(traffic, link),
                     others});
  }
  return links;
}

std::vector<LinkKindUse> use_by_kind(const JobsTraffic& traffic, Duration time, const NetworkModel& network) {
  std::vector<LinkKindUse> kinds;
  std::map<KindAndRate, std::size_t> places;
  for (std::size_t i = 0; i < traffic.main.bytes.size(); ++i) {
    const LinkId link(i);
    LinkKindUse& kind = kind_of(network, link, kinds, places);
    const double others = busy_s(network, link, traffic.others) / time.seconds();
    const double share = share_of(busy_s(network, link, traffic.main), time.seconds(), others) + others;
    ++kind.links;
    kind.mean += share;  // a sum until the end
    kind.others += others;
    if (share <= kind.most) continue;
    kind.most = share;
    kind.busiest = network.link_name(link);
  }
  for (LinkKindUse& kind : kinds) {
    kind.mean /= static_cast<double>(kind.links);
    kind.others /= static_cast<double>(kind.links);
  }
  return kinds;
}

std::vector<LinkLoad> link_loads(const Program& program, const Timeline& timeline, const Machine& machine,
                                 TimeWindow window, std::size_t most, std::size_t intervals) {
  const std::vector<LinkId> links = busiest(timeline, *machine.network, most);
  if (links.empty() || window.to <= window.from) return {};
  std::vector<std::size_t> place(timeline.links.bytes.size(), links.size());
  for (std::size_t i = 0; i < links.size(); ++i) place[links[i].index()] = i;
  std::vector<RateProfile> profiles(links.size(), RateProfile(window, intervals));
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
