#include "sim/report/link_use.h"

#include <algorithm>
#include <tuple>

namespace hdpsim {

std::vector<LinkUse> busiest_links(const std::vector<Bytes>& bytes, Duration time, const NetworkModel& network,
                                   std::size_t most) {
  struct Busy {
    double seconds;
    LinkId link;
  };
  std::vector<Busy> busy;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i].count() == 0) continue;
    const auto rate = static_cast<double>(network.link_rate(LinkId(i)).bytes_per_second());
    busy.push_back({static_cast<double>(bytes[i].count()) / rate, LinkId(i)});
  }
  const auto middle = busy.begin() + static_cast<std::ptrdiff_t>(std::min(most, busy.size()));
  std::partial_sort(busy.begin(), middle, busy.end(), [](const Busy& a, const Busy& b) {
    return std::tuple(-a.seconds, a.link.index()) < std::tuple(-b.seconds, b.link.index());
  });
  std::vector<LinkUse> links;
  for (auto it = busy.begin(); it != middle; ++it) {
    links.push_back({network.link_name(it->link), network.link_rate(it->link), bytes[it->link.index()],
                     it->seconds / time.seconds()});
  }
  return links;
}

}  // namespace hdpsim
