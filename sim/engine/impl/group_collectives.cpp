#include "sim/engine/impl/group_collectives.h"

#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/model/experts.h"

namespace hdpsim {
namespace {

// Groups that no other group is like. It bounds memory: a forgotten one is made anew.
constexpr std::size_t most_kept = 4096;

bool is_aligned(const std::vector<HdpRank>& group) {
  if (group.front().index() % group.size() != 0) return false;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i].index() != group.front().index() + i) return false;
  }
  return true;
}

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

Estimate GroupCollectives::estimate(const SharingRanks& ranks, CollectiveKind kind, Bytes bytes) {
  const CollectiveEstimate& answer = model_of(ranks).estimate(kind, bytes);
  return {answer.time, answer.evidence};
}

void GroupCollectives::add_traffic(const SharingRanks& ranks, CollectiveKind kind, Bytes bytes, double times,
                                   LinkTraffic& links) {
  const CollectiveModel& model = model_of(ranks);
  if (model.span().ranks == 1) return;
  const CollectiveEstimate& chosen = model.estimate(kind, bytes);
  const CollectivePlan& plan = model.plan(kind, chosen.algorithm);
  const double each = times * static_cast<double>(bytes.count()) * chosen.wire_bytes * plan.bytes_per_flow;
  // The parts are those of the sets: stage by stage, subgroup by subgroup, shard by shard.
  const auto subgroups = std::ssize(ranks.group) / ranks.subgroup;
  std::int64_t first = 0;
  if (is_aligned(ranks.group)) {
    const std::int64_t size = std::ssize(ranks.group);
    const std::int64_t subgroups_of_stage = mesh_.hdp / size * size / ranks.subgroup;
    first = ranks.stage * subgroups_of_stage + static_cast<std::int64_t>(ranks.group.front().index()) / ranks.subgroup;
  }
  for (std::int64_t set = first * mesh_.tp; set < (first + subgroups) * mesh_.tp; ++set) {
    for (const FairShare::Load& load : plan.parts.at(static_cast<std::size_t>(set))) {
      const LinkId link(load.link);
      const double sent = load.flows * each;
      const double as_messages = sent * chosen.as_messages.on(link, *site_.links);
      links.add(link, Bytes(static_cast<std::int64_t>(sent)), Bytes(static_cast<std::int64_t>(as_messages)));
    }
  }
}

const CollectiveModel& GroupCollectives::model_of(const SharingRanks& ranks) {
  if (is_aligned(ranks.group)) {
    const Subgroups key{std::ssize(ranks.group), ranks.subgroup};
    const auto known = aligned_.find(key);
    return known != aligned_.end() ? known->second : aligned_.emplace(key, model_of_all(ranks)).first->second;
  }
  const Others key{ranks.group, ranks.stage, ranks.subgroup};
  if (const auto known = others_.find(key); known != others_.end()) return known->second;
  if (others_.size() == most_kept) others_.clear();
  std::vector<std::vector<HdpRank>> subgroups;
  for (auto first = ranks.group.begin(); first != ranks.group.end(); first += ranks.subgroup) {
    subgroups.emplace_back(first, first + ranks.subgroup);
  }
  return others_.emplace(key, model_among(subgroups, {ranks.stage})).first->second;
}

// The subgroups of all groups of this size that the pool has room for.
CollectiveModel GroupCollectives::model_of_all(const SharingRanks& ranks) const {
  const std::int64_t size = std::ssize(ranks.group);
  std::vector<std::vector<HdpRank>> subgroups;
  for (std::int64_t first = 0; first < mesh_.hdp / size * size; first += ranks.subgroup) {
    std::vector<HdpRank>& subgroup = subgroups.emplace_back();
    for (std::int64_t i = 0; i < ranks.subgroup; ++i) subgroup.emplace_back(static_cast<std::size_t>(first + i));
  }
  std::vector<std::int64_t> stages(static_cast<std::size_t>(mesh_.pp));
  std::iota(stages.begin(), stages.end(), 0);
  return model_among(subgroups, stages);
}

CollectiveModel GroupCollectives::model_among(const std::vector<std::vector<HdpRank>>& subgroups,
                                              const std::vector<std::int64_t>& stages) const {
  DeviceSets sets;
  for (const std::int64_t stage : stages) {
    for (const std::vector<HdpRank>& subgroup : subgroups) {
      for (std::int64_t shard = 0; shard < mesh_.tp; ++shard) {
        std::vector<DeviceId>& devices = sets.emplace_back();
        for (const HdpRank rank : subgroup) devices.push_back(placement_.device(rank, stage, shard));
      }
    }
  }
  return CollectiveModel(*site_.links, site_.profile, std::move(sets));
}

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
