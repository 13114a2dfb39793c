#include "sim/engine/collective_traffic.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"
#include "sim/engine/impl/group_collectives.h"
#include "sim/model/shares.h"

namespace hdpsim {

void CollectiveTraffic::set(TrafficSets sets, Model price, std::function<Model()> of_all) {
  models_.at(static_cast<std::size_t>(sets)) = {std::move(price), std::move(of_all), nullptr};
}

void CollectiveTraffic::add(std::vector<SetTraffic>& traffic, TrafficSets sets, CollectiveKind kind, Bytes bytes,
                            double times, Bytes bucket) const {
  const Model& price = models_.at(static_cast<std::size_t>(sets)).price;
  if (price == nullptr || price->span().ranks == 1 || bytes == Bytes{} || times == 0) return;
  const CollectiveEstimate& chosen = price->estimate(kind, std::max(bytes, bucket));
  const double sent = times * static_cast<double>(bytes.count()) * chosen.wire_bytes;
  const SetTraffic more{sets, kind, chosen.algorithm, chosen.as_messages, sent};
  const auto same =
      std::find_if(traffic.begin(), traffic.end(), [&](const SetTraffic& known) { return known.is_like(more); });
  if (same != traffic.end()) {
    same->bytes += sent;
  } else {
    traffic.push_back(more);
  }
}

void CollectiveTraffic::set_exchange(std::shared_ptr<const NodeExchange> exchange) {
  exchange_ = std::move(exchange);
  set(TrafficSets::experts_by_node, exchange_->between());
  set(TrafficSets::experts_in_node, exchange_->inside());
}

void CollectiveTraffic::add_exchange(std::vector<SetTraffic>& traffic, const MixtureOfExperts& moe, Bytes tokens,
                                     double times) const {
  if (exchange_ == nullptr) return;
  const NodeExchange::Parts& parts = exchange_->parts_of(moe);
  constexpr CollectiveKind kind = CollectiveKind::all_to_all;
  add(traffic, TrafficSets::experts_by_node, kind, tokens.scaled(parts.nodes), times);
  add(traffic, TrafficSets::experts_in_node, kind, tokens.scaled(parts.devices), times);
}

/// The sets that have the same parameters, and those among which they shard states in groups.
struct CollectiveTraffic::PoolSets {
  TrafficSets all;
  TrafficSets groups;
  TrafficSets replicas;

  static constexpr PoolSets common() {
    return {TrafficSets::pool, TrafficSets::shard_groups, TrafficSets::shard_replicas};
  }
  static constexpr PoolSets experts() {
    return {TrafficSets::expert_pools, TrafficSets::expert_shard_groups, TrafficSets::expert_shard_replicas};
  }
};

// As reduction_of() prices it.
void CollectiveTraffic::add_reduction(std::vector<SetTraffic>& traffic, const PoolBytes& gradients, bool all_reduce,
                                      double times, const PoolBytes& bucket) const {
  add_reduction(traffic, PoolSets::common(), gradients.common, all_reduce, times, bucket.common);
  add_reduction(traffic, PoolSets::experts(), gradients.experts, all_reduce, times, bucket.experts);
}

void CollectiveTraffic::add_reduction(std::vector<SetTraffic>& traffic, const PoolSets& of, Bytes gradients,
                                      bool all_reduce, double times, Bytes bucket) const {
  const Model& groups = models_.at(static_cast<std::size_t>(of.groups)).price;
  if (all_reduce || groups == nullptr) {
    add(traffic, of.all, CollectiveKind::reduce_scatter, gradients, times, bucket);
    if (all_reduce) add(traffic, of.all, CollectiveKind::all_gather, gradients, times, bucket);
    return;
  }
  add(traffic, of.groups, CollectiveKind::reduce_scatter, gradients, times, bucket);
  const auto shard = [&](Bytes whole) { return Bytes(divided(whole.count(), groups->span().ranks)); };
  add(traffic, of.replicas, CollectiveKind::all_reduce, shard(gradients), times, shard(bucket));
}

void CollectiveTraffic::add_gather(std::vector<SetTraffic>& traffic, const PoolBytes& parameters, double times,
                                   const PoolBytes& bucket) const {
  add_gather(traffic, PoolSets::common(), parameters.common, times, bucket.common);
  add_gather(traffic, PoolSets::experts(), parameters.experts, times, bucket.experts);
}

void CollectiveTraffic::add_gather(std::vector<SetTraffic>& traffic, const PoolSets& of, Bytes parameters, double times,
                                   Bytes bucket) const {
  const bool is_hybrid = models_.at(static_cast<std::size_t>(of.groups)).price != nullptr;
  add(traffic, is_hybrid ? of.groups : of.all, CollectiveKind::all_gather, parameters, times, bucket);
}

void CollectiveTraffic::add_sharing(const SharingRanks& ranks, const SharingCollective& collective, double times,
                                    LinkTraffic& links) const {
  groups_->add_traffic(ranks, collective.kind, collective.bytes, times, links);
}

const CollectivePlan& CollectiveTraffic::plan(const SetTraffic& traffic) const {
  Models& models = models_.at(static_cast<std::size_t>(traffic.sets));
  HDPSIM_CHECK(models.price != nullptr, "traffic of sets that the job has not");
  if (models.all == nullptr) models.all = models.of_all ? models.of_all() : models.price;
  return models.all->plan(traffic.kind, traffic.algorithm);
}

const ClusterLinks& CollectiveTraffic::links(const SetTraffic& traffic) const {
  return models_.at(static_cast<std::size_t>(traffic.sets)).price->links();
}

TrafficCount::TrafficCount(const CollectiveTraffic* traffic, const Mesh& mesh)
    : traffic_(traffic),
      workers_(static_cast<std::size_t>(mesh.hdp * mesh.pp)),
      stages_(static_cast<std::size_t>(mesh.pp)),
      shards_(static_cast<std::size_t>(mesh.tp)) {}

TrafficCount::Count& TrafficCount::count_of(const SetTraffic& traffic) {
  const auto known =
      std::find_if(counts_.begin(), counts_.end(), [&](const Count& count) { return count.of.is_like(traffic); });
  return known != counts_.end() ? *known : counts_.emplace_back(Count{traffic, std::vector<double>(workers_)});
}

void TrafficCount::add(std::span<const SetTraffic> traffic, std::span<const WorkerId> workers, double share) {
  for (const SetTraffic& one : traffic) {
    std::vector<double>& bytes = count_of(one).bytes;
    for (const WorkerId worker : workers) bytes[worker.index()] += share * one.bytes;
  }
}

// Pools are stage by stage, shard by shard.
std::vector<double> TrafficCount::bytes_of_sets(const Count& count, std::size_t sets) const {
  if (count.of.sets == TrafficSets::tensor_parallel) return count.bytes;
  if (count.of.sets != TrafficSets::pool) {
    const double all = std::accumulate(count.bytes.begin(), count.bytes.end(), 0.0);
    return std::vector<double>(sets, all / static_cast<double>(workers_));
  }
  std::vector<double> bytes(sets);
  for (std::size_t worker = 0; worker < workers_; ++worker) {
    for (std::size_t shard = 0; shard < shards_; ++shard) {
      bytes[worker % stages_ * shards_ + shard] +=
          count.bytes[worker] * static_cast<double>(stages_) / static_cast<double>(workers_);
    }
  }
  return bytes;
}

void TrafficCount::add_to(LinkTraffic& links) const {
  struct Sum {
    double bytes = 0;
    double as_messages = 0;
  };
  std::vector<Sum> sums(links.bytes.size());
  for (const Count& count : counts_) {
    const CollectivePlan& plan = traffic_->plan(count.of);
    const ClusterLinks& of_sets = traffic_->links(count.of);
    const std::vector<double> bytes = bytes_of_sets(count, plan.parts.size());
    HDPSIM_CHECK(bytes.size() == plan.parts.size(), "{} sets and {} parts", bytes.size(), plan.parts.size());
    for (std::size_t set = 0; set < bytes.size(); ++set) {
      const double each = bytes[set] * plan.bytes_per_flow;
      for (const FairShare::Load& load : plan.parts[set]) {
        sums[load.link].bytes += load.flows * each;
        sums[load.link].as_messages += load.flows * each * count.of.as_messages.on(LinkId(load.link), of_sets);
      }
    }
  }
  const auto whole = [](double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); };
  for (std::size_t link = 0; link < sums.size(); ++link) {
    links.add(LinkId(link), whole(sums[link].bytes), whole(sums[link].as_messages));
  }
}

}  // namespace hdpsim
