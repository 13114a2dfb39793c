#include "sim/engine/impl/node_exchange.h"

#include <map>
#include <utility>
#include <vector>

#include "sim/model/expert_choice.h"

namespace hdpsim {
namespace {

void take_rate_of_dispatch(std::optional<LinkProfile>& link) {
  if (link && link->dispatch) link->all_to_all = link->dispatch;
}

// Measured curves are those of NCCL.
DeviceProfile with_dispatch(DeviceProfile profile) {
  const bool states = (profile.nvlink && profile.nvlink->dispatch) || (profile.network && profile.network->dispatch);
  if (!states) return profile;
  take_rate_of_dispatch(profile.nvlink);
  take_rate_of_dispatch(profile.network);
  std::erase_if(profile.fits.messages, [](const MessageFit& fit) { return fit.kind == MessageKind::all_to_all; });
  return profile;
}

// The devices of a group, node by node.
DeviceSets by_node(const ClusterSpec& cluster, const std::vector<DeviceId>& group) {
  std::map<NodeId, std::vector<DeviceId>> nodes;
  for (const DeviceId device : group) nodes[cluster.node_of(device)].push_back(device);
  DeviceSets sets;
  for (auto& [node, devices] : nodes) sets.push_back(std::move(devices));
  return sets;
}

}  // namespace

NodeExchange::NodeExchange(const Site& site, const DeviceSets& groups) : profile_(with_dispatch(site.profile)) {
  const CollectiveSpan span = span_of(site.cluster, groups);
  devices_ = span.ranks;
  const auto among = [&](DeviceSets sets) {
    return std::make_shared<const CollectiveModel>(*site.links, profile_, std::move(sets));
  };
  // A group on fewer nodes than another has more of its devices in each.
  if (!span.is_even || span.nodes * span.in_node != span.ranks) {
    inside_ = among(groups);
    return;
  }
  nodes_ = span.nodes;
  DeviceSets nodes;
  DeviceSets planes;
  for (const std::vector<DeviceId>& group : groups) {
    const DeviceSets parts = by_node(site.cluster, group);
    for (std::size_t place = 0; place < parts.front().size(); ++place) {
      std::vector<DeviceId>& plane = planes.emplace_back();
      for (const std::vector<DeviceId>& part : parts) plane.push_back(part[place]);
    }
    nodes.insert(nodes.end(), parts.begin(), parts.end());
  }
  if (span.nodes > 1) between_ = among(std::move(planes));
  if (span.in_node > 1) inside_ = among(std::move(nodes));
}

const NodeExchange::Parts& NodeExchange::parts_of(const MixtureOfExperts& moe) const {
  if (known_.moe != moe) known_ = {moe, {mean_parts(moe, nodes_), mean_parts(moe, devices_)}};
  return known_.parts;
}

Estimate NodeExchange::estimate(const MixtureOfExperts& moe, Bytes tokens) const {
  const Parts& parts = parts_of(moe);
  Estimate slower;
  const auto add = [&](const CollectiveModel* model, double of_tokens) {
    if (model == nullptr) return;
    const CollectiveEstimate& part = model->estimate(CollectiveKind::all_to_all, tokens.scaled(of_tokens));
    if (part.time > slower.time) slower = {part.time, part.evidence};
  };
  add(between_.get(), parts.nodes);
  add(inside_.get(), parts.devices);
  return slower;
}

}  // namespace hdpsim
