#include "sim/analysis/link_use.h"

#include <algorithm>
#include <tuple>

namespace hdpsim {

std::vector<LinkUse> busiest_links(const LinkBytes& bytes, Duration time, const NetworkModel& network,
                                   std::size_t most) {
  const auto others = [&](LinkId link) { return bytes.others.empty() ? Bytes{} : bytes.others[link.index()]; };
  const auto seconds = [&](LinkId link, Bytes carried) {
    return static_cast<double>(carried.count()) / static_cast<double>(network.link_rate(link).bytes_per_second());
  };
  struct Busy {
    double seconds;
    LinkId link;
  };
  std::vector<Busy> busy;
  for (std::size_t i = 0; i < bytes.main.size(); ++i) {
    const LinkId link(i);
    if (bytes.main[i].count() > 0) busy.push_back({seconds(link, bytes.main[i] + others(link)), link});
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
    links.push_back({network.link_name(link), network.link_rate(link), own, seconds(link, own) / time.seconds(), other,
                     seconds(link, other) / time.seconds()});
  }
  return links;
}

}  // namespace hdpsim
