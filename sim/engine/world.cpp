#include "sim/engine/world.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/engine/collective_traffic.h"
#include "sim/engine/impl/group_collectives.h"
#include "sim/engine/work_probes.h"
#include "sim/network/collective_model.h"
#include "sim/network/fair_share_network.h"

namespace hdpsim {
namespace {

// Devices behind one PCIe uplink share it when all of them copy, as they do in training.
Bandwidth host_copy_rate(const ClusterSpec& cluster, std::optional<Bandwidth> measured, double factor) {
  const Bandwidth uplink = cluster.pcie / std::max<std::int64_t>(1, cluster.devices_per_pcie_uplink);
  return measured ? std::min(measured->scaled(1 / factor), uplink) : uplink;
}

std::optional<SetUpCosts> set_up_costs(const DeviceProfile& profile, const ConnectionOptions& options) {
  if (!options.cold || !profile.connections) return std::nullopt;
  const ConnectionCosts& known = *profile.connections;
  return SetUpCosts{options.communicators, known.communicator.value_or(CommunicatorCost{}),
                    known.first_contact.value_or(Duration{})};
}

// The speed of every worker's slowest device. `factors`: see Job::set_time_factors().
std::vector<double> worker_speeds(const Mesh& mesh, const Placement& placement, const ClusterSpec& cluster,
                                  const std::vector<double>& factors) {
  const auto speed = [&](HdpRank rank, std::int64_t stage, std::int64_t shard) {
    const DeviceId device = placement.device(rank, stage, shard);
    return cluster.speed_of(device) / (factors.empty() ? 1.0 : factors.at(device.index()));
  };
  std::vector<double> speeds;
  speeds.reserve(static_cast<std::size_t>(mesh.hdp * mesh.pp));
  for (std::int64_t worker = 0; worker < mesh.hdp * mesh.pp; ++worker) {
    const HdpRank rank(static_cast<std::size_t>(worker / mesh.pp));
    double slowest = speed(rank, worker % mesh.pp, 0);
    for (std::int64_t shard = 1; shard < mesh.tp; ++shard) {
      slowest = std::min(slowest, speed(rank, worker % mesh.pp, shard));
    }
    speeds.push_back(slowest);
  }
  return speeds;
}

using Model = std::shared_ptr<const CollectiveModel>;

Model model_among(DeviceSets sets, const Site& site) {
  return std::make_shared<CollectiveModel>(*site.links, site.profile, std::move(sets));
}

Collective collective_of(const Model& model) {
  return [model](CollectiveKind kind, Bytes bytes) {
    const CollectiveEstimate& estimate = model->estimate(kind, bytes);
    return Estimate{estimate.time, estimate.evidence};
  };
}

// The ranks of a mesh are alike: those of the first stage of the first one represent all.
std::vector<DeviceId> tensor_parallel_devices(const Mesh& mesh, const Placement& placement) {
  std::vector<DeviceId> devices;
  for (std::int64_t shard = 0; shard < mesh.tp; ++shard) devices.push_back(placement.device(HdpRank(0), 0, shard));
  return devices;
}

// By worker.
DeviceSets all_tensor_parallel_devices(const Mesh& mesh, const Placement& placement) {
  DeviceSets sets;
  for (std::int64_t worker = 0; worker < mesh.hdp * mesh.pp; ++worker) {
    std::vector<DeviceId>& devices = sets.emplace_back();
    const HdpRank rank(static_cast<std::size_t>(worker / mesh.pp));
    for (std::int64_t shard = 0; shard < mesh.tp; ++shard) {
      devices.push_back(placement.device(rank, worker % mesh.pp, shard));
    }
  }
  return sets;
}

/// Sets that have the same parameters, where so many devices of each shard states among each other.
struct ShardedPools {
  DeviceSets pools;
  std::int64_t devices = 0;
  TrafficSets groups = TrafficSets::shard_groups;
  TrafficSets replicas = TrafficSets::shard_replicas;
};

HybridSharding hybrid_sharding(const Site& site, const ShardedPools& of, CollectiveTraffic& traffic) {
  const Model within = model_among(shard_groups(of.pools, of.devices), site);
  const Model across = model_among(shard_replicas(of.pools, of.devices), site);
  traffic.set(of.groups, within);
  traffic.set(of.replicas, across);
  return {of.devices, collective_of(within), collective_of(across)};
}

void add_experts(Machine& machine, const Site& site, const Mesh& mesh, CollectiveTraffic& traffic) {
  const Placement& placement = *machine.placement;
  const Model groups = model_among(expert_groups(mesh, placement), site);
  const Model pools = model_among(expert_pools(mesh, placement), site);
  const auto exchange = std::make_shared<const NodeExchange>(site, expert_groups(mesh, placement));
  const Model cuts = model_among(expert_cuts(mesh, placement), site);
  machine.experts = collective_of(groups);
  machine.expert_cuts = collective_of(cuts);
  machine.experts_per_node = [exchange](const MixtureOfExperts& moe, Bytes tokens) {
    return exchange->estimate(moe, tokens);
  };
  machine.expert_pools = collective_of(pools);
  traffic.set(TrafficSets::experts, groups);
  traffic.set(TrafficSets::expert_cuts, cuts);
  traffic.set_exchange(exchange);
  traffic.set(TrafficSets::expert_pools, pools);
  if (!mesh.shards_in_groups()) return;
  machine.expert_hybrid = hybrid_sharding(site,
                                          {expert_pools(mesh, placement), mesh.expert_shards(),
                                           TrafficSets::expert_shard_groups, TrafficSets::expert_shard_replicas},
                                          traffic);
}

// `site` and the placement live as long as the machine.
void add_collectives(Machine& machine, const Site& site, const Mesh& mesh) {
  const Placement& placement = *machine.placement;
  const auto groups = std::make_shared<GroupCollectives>(site, mesh, placement);
  const auto traffic = std::make_shared<CollectiveTraffic>(groups);
  const Model shards = model_among({tensor_parallel_devices(mesh, placement)}, site);
  machine.tensor_parallel = collective_of(shards);
  traffic->set(TrafficSets::tensor_parallel, shards,
               [&site, &placement, mesh] { return model_among(all_tensor_parallel_devices(mesh, placement), site); });
  const Model pool = model_among(pools(mesh, placement), site);
  machine.pool = collective_of(pool);
  traffic->set(TrafficSets::pool, pool);
  machine.pool_flows = [pool](CollectiveKind kind, Bytes bytes) {
    return pool->flows(kind, pool->estimate(kind, bytes));
  };
  if (mesh.shards_in_groups()) {
    machine.hybrid = hybrid_sharding(site, {pools(mesh, placement), mesh.ranks_of_a_shard_group()}, *traffic);
  }
  machine.sharing = [groups](const SharingRanks& ranks, CollectiveKind kind, Bytes bytes) {
    return groups->estimate(ranks, kind, bytes);
  };
  if (mesh.experts().has_groups()) add_experts(machine, site, mesh, *traffic);
  machine.traffic = traffic;
}

}  // namespace

std::unique_ptr<Site> make_site(const ClusterSpec& cluster, const DeviceProfile& profile) {
  auto site = std::make_unique<Site>();
  site->cluster = cluster;
  site->profile = profile;
  site->cost = make_cost_model(profile);
  site->watched_cost = std::make_unique<WatchedCostModel>(*site->cost);
  site->network = make_fair_share_network(cluster, message_efficiency(profile));
  site->links = std::make_unique<ClusterLinks>(cluster, LinkEfficiency{});
  return site;
}

std::unique_ptr<Job> Job::make(const Site& site, const JobLayout& layout, Diagnostics& diagnostics) {
  auto placed = make_placement(layout.placement, layout.mesh, site.cluster, diagnostics, {}, layout.nodes);
  if (placed == nullptr) return nullptr;
  return std::unique_ptr<Job>(new Job(site, layout, std::move(placed)));
}

Job::Job(const Site& site, const JobLayout& layout, std::unique_ptr<Placement> placement)
    : site_(site), mesh_(layout.mesh), placement_(std::move(placement)) {
  const DeviceProfile& profile = site.profile;
  machine_.cost = site.watched_cost.get();
  machine_.network = site.network.get();
  machine_.placement = placement_.get();
  machine_.tp = mesh_.tp;
  machine_.ring_nics = layout.ring_nics;
  machine_.speed = worker_speeds(mesh_, *placement_, site.cluster, {});
  const auto& copies = profile.host_copies;
  const double slower = profile.factors[CostFamily::host_copies];
  machine_.d2h = host_copy_rate(site.cluster, copies ? std::optional(copies->d2h) : std::nullopt, slower);
  machine_.h2d = host_copy_rate(site.cluster, copies ? std::optional(copies->h2d) : std::nullopt, slower);
  machine_.micro_batch_overhead = profile.overheads.per_micro_batch.time;
  machine_.step_overhead = profile.overheads.per_step.time;
  machine_.host = host_times(profile.overheads);
  machine_.set_up = set_up_costs(profile, layout.connections);
  machine_.overlap_slowdown = kernel_slowdown(profile);
  add_collectives(machine_, site, mesh_);
}

HostTimes host_times(const Overheads& overheads) {
  const auto time = [](const std::optional<Overhead>& stated, Duration otherwise) {
    return stated ? stated->time : otherwise;
  };
  const Duration issue = time(overheads.host_issue, {});
  if (issue == Duration{}) return {};
  return {issue, std::min(issue, time(overheads.host_loop, issue)), time(overheads.host_narrow, {}),
          time(overheads.host_dispatch, issue)};
}

void Job::set_time_factors(const std::vector<double>& factors) {
  const bool changes = !factors.empty() || has_time_factors_;
  has_time_factors_ = !factors.empty();
  if (changes) machine_.speed = worker_speeds(mesh_, *placement_, site_.cluster, factors);
}

std::vector<DeviceId> Job::devices() const {
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(mesh_.devices()));
  for (std::int64_t rank = 0; rank < mesh_.hdp; ++rank) {
    for (std::int64_t part = 0; part < mesh_.pp * mesh_.tp; ++part) {
      devices.push_back(placement_->device(HdpRank(static_cast<std::size_t>(rank)), part / mesh_.tp, part % mesh_.tp));
    }
  }
  return devices;
}

std::int64_t Job::ranks_per_node() const {
  return hdpsim::ranks_per_node(*placement_, mesh_, site_.cluster);
}

WorkModel Job::work_model(const LoweringOptions& lowering, std::int64_t capacity) const {
  Machine machine = machine_;
  machine.cost = site_.cost.get();  // what planners ask is no part of a simulation's coverage
  WorkModel work = work_model_of(lowering, capacity, machine, ranks_per_node());
  // The shards of a rank send at the same time, which hops that use all NICs count already.
  const bool crosses =
      machine_.ring_nics == NicUse::own && site_.cluster.nodes() > 1 && lowering.mesh.hdp > ranks_per_node();
  if (crosses) work.per_ring_token *= static_cast<double>(std::min(lowering.mesh.tp, site_.cluster.devices_per_nic()));
  return work;
}

std::unique_ptr<World> World::make(const ClusterSpec& cluster, const DeviceProfile& profile, const JobLayout& layout,
                                   Diagnostics& diagnostics) {
  std::unique_ptr<Site> site = make_site(cluster, profile);
  std::unique_ptr<Job> job = Job::make(*site, layout, diagnostics);
  if (job == nullptr) return nullptr;
  return std::unique_ptr<World>(new World(std::move(site), std::move(job)));
}

bool World::add_neighbour(JobLayout layout, Diagnostics& diagnostics) {
  layout.connections = {};
  std::unique_ptr<Job> job = Job::make(*site_, layout, diagnostics);
  if (job == nullptr) return false;
  neighbours_.push_back(std::move(job));
  return true;
}

void World::set_time_factors(const std::vector<double>& factors) {
  job_->set_time_factors(factors);
  for (const auto& job : neighbours_) job->set_time_factors(factors);
}

}  // namespace hdpsim
