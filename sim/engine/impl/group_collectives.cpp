#include "sim/engine/impl/group_collectives.h"

#include <numeric>

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
  // The parts are those of the sets: stage by stage, party by party, shard by shard.
  const auto parties = std::ssize(ranks.group) / ranks.party;
  std::int64_t first = 0;
  if (is_aligned(ranks.group)) {
    const std::int64_t size = std::ssize(ranks.group);
    const std::int64_t parties_of_stage = mesh_.hdp / size * size / ranks.party;
    first = ranks.stage * parties_of_stage + static_cast<std::int64_t>(ranks.group.front().index()) / ranks.party;
  }
  for (std::int64_t set = first * mesh_.tp; set < (first + parties) * mesh_.tp; ++set) {
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
    const Parties key{std::ssize(ranks.group), ranks.party};
    const auto known = aligned_.find(key);
    return known != aligned_.end() ? known->second : aligned_.emplace(key, model_of_all(ranks)).first->second;
  }
  const Others key{ranks.group, ranks.stage, ranks.party};
  if (const auto known = others_.find(key); known != others_.end()) return known->second;
  if (others_.size() == most_kept) others_.clear();
  std::vector<std::vector<HdpRank>> parties;
  for (auto first = ranks.group.begin(); first != ranks.group.end(); first += ranks.party) {
    parties.emplace_back(first, first + ranks.party);
  }
  return others_.emplace(key, model_among(parties, {ranks.stage})).first->second;
}

// The parties of all groups of this size that the pool has room for.
CollectiveModel GroupCollectives::model_of_all(const SharingRanks& ranks) const {
  const std::int64_t size = std::ssize(ranks.group);
  std::vector<std::vector<HdpRank>> parties;
  for (std::int64_t first = 0; first < mesh_.hdp / size * size; first += ranks.party) {
    std::vector<HdpRank>& party = parties.emplace_back();
    for (std::int64_t i = 0; i < ranks.party; ++i) party.emplace_back(static_cast<std::size_t>(first + i));
  }
  std::vector<std::int64_t> stages(static_cast<std::size_t>(mesh_.pp));
  std::iota(stages.begin(), stages.end(), 0);
  return model_among(parties, stages);
}

CollectiveModel GroupCollectives::model_among(const std::vector<std::vector<HdpRank>>& parties,
                                              const std::vector<std::int64_t>& stages) const {
  DeviceSets sets;
  for (const std::int64_t stage : stages) {
    for (const std::vector<HdpRank>& party : parties) {
      for (std::int64_t shard = 0; shard < mesh_.tp; ++shard) {
        std::vector<DeviceId>& devices = sets.emplace_back();
        for (const HdpRank rank : party) devices.push_back(placement_.device(rank, stage, shard));
      }
    }
  }
  return CollectiveModel(*site_.links, site_.profile, std::move(sets));
}

}  // namespace hdpsim
