#include "sim/analysis/link_use.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/network/link_kind.h"

namespace hdpsim {

namespace {

Bytes other_bytes(const LinkBytes& bytes, LinkId link) {
  return bytes.others.empty() ? Bytes{} : bytes.others[link.index()];
}

double seconds_on(const NetworkModel& network, LinkId link, Bytes carried) {
  return static_cast<double>(carried.count()) / static_cast<double>(network.link_rate(link).bytes_per_second());
}

// The share of the time that a link needs for these bytes beside those of others. Collectives reach more of a link than
// messages between two ranks do, whose rate is the link's here: what would take longer than the time fills it.
double share_of(double seconds_needed, double seconds, double others) {
  return std::min(seconds_needed / seconds, std::max(0.0, 1 - others));
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

std::vector<LinkUse> busiest_links(const LinkBytes& bytes, double seconds, const NetworkModel& network,
                                   std::size_t most) {
  const auto others = [&](LinkId link) { return other_bytes(bytes, link); };
  struct Busy {
    double seconds;
    LinkId link;
  };
  std::vector<Busy> busy;
  for (std::size_t i = 0; i < bytes.main.size(); ++i) {
    const LinkId link(i);
    if (bytes.main[i].count() > 0) busy.push_back({seconds_on(network, link, bytes.main[i] + others(link)), link});
  }
  const auto middle = busy.begin() + static_cast<std::ptrdiff_t>(std::min(most, busy.size()));
  std::partial_sort(busy.begin(), middle, busy.end(), [](const Busy& a, const Busy& b) {
    return std::tuple(-a.seconds, a.link.index()) < std::tuple(-b.seconds, b.link.index());
  });
  std::vector<LinkUse> links;
  for (auto it = busy.begin(); it != middle; ++it) {
    const LinkId link = it->link;
    const Bytes own = bytes.main[link.index()];
    const Bytes other = others(link);
    const double used_by_others = seconds_on(network, link, other) / seconds;
    links.push_back({network.link_name(link), network.link_rate(link), own,
                     share_of(seconds_on(network, link, own), seconds, used_by_others), other, used_by_others});
  }
  return links;
}

std::vector<LinkKindUse> use_by_kind(const LinkBytes& bytes, Duration time, const NetworkModel& network) {
  std::vector<LinkKindUse> kinds;
  std::map<KindAndRate, std::size_t> places;
  for (std::size_t i = 0; i < bytes.main.size(); ++i) {
    const LinkId link(i);
    LinkKindUse& kind = kind_of(network, link, kinds, places);
    const double others = seconds_on(network, link, other_bytes(bytes, link)) / time.seconds();
    const double share = share_of(seconds_on(network, link, bytes.main[i]), time.seconds(), others) + others;
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
