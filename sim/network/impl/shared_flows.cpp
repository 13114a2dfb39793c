#include "sim/network/impl/shared_flows.h"

#include <algorithm>
#include <map>

namespace hdpsim {

void add_both_ways(CollectivePlanBuilder& builder, DeviceId one, DeviceId other, double flows) {
  builder.send(one, other, flows);
  builder.send(other, one, flows);
}

void add_chains(CollectivePlanBuilder& builder, std::span<const DeviceId> members, std::span<const std::uint32_t> ports,
                double flows) {
  if (members.size() == 1) return;
  for (std::size_t to = 0; to < members.size(); ++to) {
    const auto without = static_cast<std::size_t>(std::count(ports.begin(), ports.end(), to));
    const std::size_t chains = ports.size() - without;
    const std::size_t from = (to + members.size() - 1) % members.size();
    if (chains > 0) add_both_ways(builder, members[from], members[to], static_cast<double>(chains) * flows);
  }
}

void add_switch_tree(CollectivePlanBuilder& builder, const MembersByNode& members, std::size_t nic) {
  std::map<LinkId, double> used;
  const DeviceId root = members.port(0, nic);
  for (std::size_t node = 1; node < members.nodes(); ++node) {
    const DeviceId port = members.port(node, nic);
    for (const Route& route : {builder.watch(port, root), builder.watch(root, port)}) {
      for (const auto& [link, share] : route.binding_links()) used[link] = std::max(used[link], share);
    }
  }
  for (const auto& [link, share] : used) builder.load(link, share);
}

}  // namespace hdpsim
