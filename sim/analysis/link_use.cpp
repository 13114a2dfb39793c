#include "sim/analysis/link_use.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/network/link_kind.h"

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

}  // namespace hdpsim
