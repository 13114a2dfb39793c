#include "sim/engine/world.h"

#include <algorithm>

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

// What the jobs of a cluster have in common.
struct Site {
  ClusterSpec cluster;
  DeviceProfile profile;
  std::unique_ptr<CostModel> cost;
  std::unique_ptr<WatchedCostModel> watched_cost;
  std::unique_ptr<NetworkModel> network;
  std::unique_ptr<ClusterLinks> links;  ///< Links at their full rates: CollectiveModel applies efficiencies itself.
};

// The speed of every worker's slowest device. `factors` are those of World::set_time_factors.
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

// The devices of the first rank's first stage, which represent those of all ranks and stages, because these are alike.
std::vector<DeviceId> tensor_parallel_devices(const Mesh& mesh, const Placement& placement) {
  std::vector<DeviceId> devices;
  for (std::int64_t shard = 0; shard < mesh.tp; ++shard) devices.push_back(placement.device(HdpRank(0), 0, shard));
  return devices;
}

// `site` must live as long as the machine.
void add_collectives(Machine& machine, const Site& site, const Mesh& mesh) {
  const Placement& placement = *machine.placement;
  machine.tensor_parallel = collective_of(model_among({tensor_parallel_devices(mesh, placement)}, site));
  const Model pool = model_among(pools(mesh, placement), site);
  machine.pool = collective_of(pool);
  machine.pool_flows = [pool](CollectiveKind kind, Bytes bytes) {
    return pool->flows(kind, pool->estimate(kind, bytes));
  };
  if (mesh.ep == 1) return;
  machine.experts = collective_of(model_among(expert_groups(mesh, placement), site));
  machine.expert_pools = collective_of(model_among(expert_pools(mesh, placement), site));
}

}  // namespace

struct World::Parts {
  std::shared_ptr<Site> site;
  Mesh mesh;
  ConnectionOptions connections;
  std::unique_ptr<Placement> placement;
  Machine machine;
  bool has_time_factors = false;
  std::vector<std::unique_ptr<World>> jobs;
};

World::World(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

World::~World() = default;

std::unique_ptr<World> World::make(const ClusterSpec& cluster, const DeviceProfile& profile, const Mesh& mesh,
                                   std::string_view placement, Diagnostics& diagnostics,
                                   const ConnectionOptions& options, const NodeList& nodes) {
  auto parts = std::make_unique<Parts>();
  parts->mesh = mesh;
  parts->site = std::make_shared<Site>();
  Site& site = *parts->site;
  site.cluster = cluster;
  site.profile = profile;
  site.cost = make_cost_model(profile);
  site.watched_cost = std::make_unique<WatchedCostModel>(*site.cost);
  site.network = make_fair_share_network(cluster, message_efficiency(profile));
  site.links = std::make_unique<ClusterLinks>(cluster, LinkEfficiency{});
  parts->connections = options;
  return place(std::move(parts), placement, nodes, diagnostics);
}

World* World::add_job(const Mesh& mesh, std::string_view placement, const NodeList& nodes, Diagnostics& diagnostics) {
  auto parts = std::make_unique<Parts>();
  parts->mesh = mesh;
  parts->site = parts_->site;
  std::unique_ptr<World> job = place(std::move(parts), placement, nodes, diagnostics);
  if (job == nullptr) return nullptr;
  return parts_->jobs.emplace_back(std::move(job)).get();
}

World& World::job(std::size_t index) {
  return *parts_->jobs.at(index);
}

std::unique_ptr<World> World::place(std::unique_ptr<Parts> parts, std::string_view placement, const NodeList& nodes,
                                    Diagnostics& diagnostics) {
  const ClusterSpec& cluster = parts->site->cluster;
  const DeviceProfile& profile = parts->site->profile;
  const Mesh& mesh = parts->mesh;
  parts->placement = make_placement(placement, mesh, cluster, diagnostics, {}, nodes);
  if (!parts->placement) return nullptr;

  Machine& machine = parts->machine;
  machine.cost = parts->site->watched_cost.get();
  machine.network = parts->site->network.get();
  machine.placement = parts->placement.get();
  machine.tp = mesh.tp;
  machine.speed = worker_speeds(mesh, *parts->placement, cluster, {});
  const auto& copies = profile.host_copies;
  const double slower = profile.factors[CostFamily::host_copies];
  machine.d2h = host_copy_rate(cluster, copies ? std::optional(copies->d2h) : std::nullopt, slower);
  machine.h2d = host_copy_rate(cluster, copies ? std::optional(copies->h2d) : std::nullopt, slower);
  machine.micro_batch_overhead = profile.overheads.per_micro_batch.time;
  machine.step_overhead = profile.overheads.per_step.time;
  if (profile.overheads.host_issue) machine.issue = profile.overheads.host_issue->time;
  machine.set_up = set_up_costs(profile, parts->connections);
  machine.beside_communication = kernel_slowdown(profile);

  add_collectives(machine, *parts->site, mesh);
  return std::unique_ptr<World>(new World(std::move(parts)));
}

Machine& World::machine() {
  return parts_->machine;
}

void World::set_time_factors(const std::vector<double>& factors) {
  const bool changes = !factors.empty() || parts_->has_time_factors;
  parts_->has_time_factors = !factors.empty();
  if (!changes) return;
  parts_->machine.speed = worker_speeds(parts_->mesh, *parts_->placement, parts_->site->cluster, factors);
  for (const auto& job : parts_->jobs) job->set_time_factors(factors);
}

std::vector<DeviceId> World::devices() const {
  const Mesh& mesh = parts_->mesh;
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(mesh.devices()));
  for (std::int64_t rank = 0; rank < mesh.hdp; ++rank) {
    for (std::int64_t part = 0; part < mesh.pp * mesh.tp; ++part) {
      devices.push_back(
          parts_->placement->device(HdpRank(static_cast<std::size_t>(rank)), part / mesh.tp, part % mesh.tp));
    }
  }
  return devices;
}

Coverage World::take_coverage() {
  return parts_->site->watched_cost->take_coverage();
}

std::int64_t World::ranks_per_node() const {
  return hdpsim::ranks_per_node(*parts_->placement, parts_->mesh, parts_->site->cluster);
}

WorkModel World::work_model(const LoweringOptions& lowering, std::int64_t capacity) const {
  Machine machine = parts_->machine;
  machine.cost = parts_->site->cost.get();  // what planners ask must not count in the coverage of simulations
  WorkModel work = work_model_of(lowering, capacity, machine, ranks_per_node());
  // The shards of a rank send at the same time, and those on one NIC share it.
  const ClusterSpec& cluster = parts_->site->cluster;
  const bool crosses = cluster.nodes() > 1 && lowering.mesh.hdp > ranks_per_node();
  if (crosses) work.per_ring_token *= static_cast<double>(std::min(lowering.mesh.tp, cluster.devices_per_nic()));
  return work;
}

}  // namespace hdpsim
