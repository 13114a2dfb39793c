#include "sim/engine/world.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "sim/model/kept_tensors.h"
#include "sim/model/work.h"
#include "sim/network/collective.h"
#include "sim/network/fair_share_network.h"
#include "sim/network/pool_collective.h"
#include "sim/program/expert_layer.h"

namespace hdpsim {
namespace {

// What a profile knows of one collective; where it knows nothing, that of its messages.
CollectiveEfficiency collective_efficiency(const DeviceProfile& profile,
                                           std::optional<CollectiveRate> LinkProfile::*collective) {
  CollectiveEfficiency efficiency{message_efficiency(profile), {}, {}};
  if (profile.nvlink && (*profile.nvlink).*collective) {
    const CollectiveRate& rate = *((*profile.nvlink).*collective);
    efficiency.links.nvlink = rate.efficiency();
    efficiency.links.nvlink_latency = rate.step_latency;
    efficiency.nvlink_start = rate.latency;
  }
  if (profile.network && (*profile.network).*collective) {
    const CollectiveRate& rate = *((*profile.network).*collective);
    efficiency.links.network = rate.efficiency();
    efficiency.links.network_latency = rate.step_latency;
    efficiency.network_start = rate.latency;
  }
  const double factor = profile.factors[CostFamily::collectives];
  efficiency.links = slowed(efficiency.links, factor);
  efficiency.nvlink_start = efficiency.nvlink_start.scaled(factor);
  efficiency.network_start = efficiency.network_start.scaled(factor);
  return efficiency;
}

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

}  // namespace

namespace {

// What the jobs of a cluster have in common.
struct Site {
  ClusterSpec cluster;
  DeviceProfile profile;
  std::unique_ptr<CostModel> cost;
  std::unique_ptr<WatchedCostModel> watched_cost;
  std::unique_ptr<NetworkModel> network;
};

// Of every worker's slowest device. `factors` as World::set_time_factors has them.
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

// `site` and the machine's placement live as long as the machine.
void add_collectives(Machine& machine, const Site& site, const Mesh& mesh) {
  const ClusterSpec& cluster = site.cluster;
  const Placement& placement = *machine.placement;
  const CollectiveEfficiency gather = collective_efficiency(site.profile, &LinkProfile::all_gather);
  const CollectiveEfficiency reduction = collective_efficiency(site.profile, &LinkProfile::reduce_scatter);
  CollectiveGroup shards = tp_group(mesh, cluster.devices_per_node);
  shards.first = placement.device(HdpRank(0), 0, 0);
  shards.last = placement.device(HdpRank(0), 0, mesh.tp - 1);
  machine.tp_collective = [gathers = Collectives(cluster, gather), shards](Bytes bytes) {
    return gathers.all_gather(shards, bytes);
  };
  const CollectiveEfficiency all_reduction = collective_efficiency(site.profile, &LinkProfile::all_reduce);
  machine.tp_all_reduce = [reduces = Collectives(cluster, all_reduction), shards](Bytes bytes) {
    return reduces.all_reduce(shards, bytes);
  };
  machine.pool_reduce_scatter = PoolCollective(ClusterLinks(cluster, reduction.links), reduction, mesh, placement);
  machine.pool_all_gather = PoolCollective(ClusterLinks(cluster, gather.links), gather, mesh, placement);
  if (mesh.ep > 1) {
    const CollectiveEfficiency exchange = collective_efficiency(site.profile, &LinkProfile::all_to_all);
    const DeviceSets pools = expert_pools(mesh, placement);
    machine.expert_all_to_all = PoolCollective(ClusterLinks(cluster, exchange.links), exchange,
                                               expert_groups(mesh, placement), CollectiveKind::all_to_all);
    machine.expert_reduce_scatter =
        PoolCollective(ClusterLinks(cluster, reduction.links), reduction, pools, CollectiveKind::reduce_scatter);
    machine.expert_all_gather =
        PoolCollective(ClusterLinks(cluster, gather.links), gather, pools, CollectiveKind::all_gather);
  }
  machine.pool_plan = [&cluster, &placement, mesh] { return pool_plan(ClusterLinks(cluster, {}), mesh, placement); };
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

// With `capacity` tokens on every rank of the expert group.
double World::expert_layer_seconds(const Transformer& model, std::int64_t capacity, const ExpertLayout& layout,
                                   Direction direction) const {
  const Machine& machine = parts_->machine;
  const CostModel& cost = *parts_->site->cost;
  const std::int64_t tp = parts_->mesh.tp;
  ExpertTokens group = tokens_inside(capacity, tp, std::min(layout.ep, tp));
  group.all *= expert_ranks(layout.ep, tp);
  double seconds = 0;
  const auto add = [&](const LinearPart& part, double times) { seconds += times * cost.linear(part).time.seconds(); };
  for (const ExpertStep& step : expert_layer({model, layout, tp, capacity, group}, direction)) {
    if (const auto* part = std::get_if<LinearPart>(&step)) {
      add(*part, 1);
    } else if (const auto* wait = std::get_if<ExpertWait>(&step)) {
      add(wait->slowest, 1);
      add(wait->even, -1);
    } else {
      const auto& op = std::get<TensorParallelCollective>(step);
      const bool travels = op.kind == CollectiveKind::all_to_all;
      if (travels) seconds += machine.expert_all_to_all(op.bytes).seconds();
      if (!travels && tp > 1) seconds += machine.tp_collective(op.bytes).seconds();
    }
  }
  return seconds;
}

// Forward parts with the collectives between them: gathers before the first products of attention and the MLP, and sums
// behind their last ones.
double World::forward_seconds(const LoweringOptions& lowering, const std::vector<DensePart>& parts,
                              std::int64_t tokens) const {
  const Machine& machine = parts_->machine;
  const std::int64_t tp = parts_->mesh.tp;
  const LinearPart part = dense_work(lowering.model, tokens, tp, parts, Direction::forward, lowering.dense);
  const double seconds = parts_->site->cost->linear(part).time.seconds();
  if (tp == 1) return seconds;
  using enum DensePart;
  const auto has = [&](std::initializer_list<DensePart> those) {
    return std::find_first_of(parts.begin(), parts.end(), those.begin(), those.end()) == parts.end() ? 0.0 : 1.0;
  };
  const Bytes hidden = hidden_bytes(lowering.model, tokens);
  const double sums = has({attention_output}) + has({mlp});
  if (!lowering.dense.sequence_parallel) return seconds + sums * machine.tp_all_reduce(hidden).seconds();
  // What a norm alone makes again is gathered with it, or by the backward that it is for.
  const bool norms_gather = !lowering.overlap_tp_gradients;
  const double gathers = (norms_gather ? has({attention_norm, qkv}) : has({qkv})) +
                         (norms_gather ? has({mlp_norm, mlp, mlp_inner}) : has({mlp, mlp_inner}));
  return seconds + (sums + gathers) * machine.tp_collective(hidden).seconds();
}

// What makes a layer's activations again from its input and attention's output, as lowering has it.
double World::again_seconds(const LoweringOptions& lowering, std::int64_t tokens) const {
  if (lowering.recompute == Recompute::full) return 0;  // again as a whole
  using enum DensePart;
  std::vector<DensePart> parts;
  const auto add = [&](LayerModule module, std::initializer_list<DensePart> own) {
    if (!lowering.recompute.has(module)) std::copy(own.begin(), own.end(), std::back_inserter(parts));
  };
  add(LayerModule::norm, {attention_norm, mlp_norm});
  add(LayerModule::qkv, {qkv});
  add(LayerModule::projection, {attention_output, attention_residual});
  add(LayerModule::mlp, {mlp_inner});
  return forward_seconds(lowering, parts, tokens);
}

// Dense work of all layers of a stage that backward does again, that of experts in place of the MLP's.
double World::recompute_seconds(const LoweringOptions& lowering, std::int64_t capacity, double layers,
                                double with_experts) const {
  LoweringOptions dense = lowering;
  dense.model = with_dense_layers(lowering.model);
  const auto seconds_of = [&](const std::vector<DensePart>& parts) { return forward_seconds(dense, parts, capacity); };
  std::vector<DensePart> parts = parts_again(lowering.recompute);
  double seconds = (layers - with_experts) * seconds_of(parts);
  if (with_experts == 0) return seconds;
  std::erase_if(parts, [](DensePart part) { return part == DensePart::mlp || part == DensePart::mlp_activation; });
  seconds += with_experts * seconds_of(parts);
  if (!lowering.recompute.has(LayerModule::experts)) return seconds;
  return seconds + with_experts * expert_layer_seconds(lowering.model, capacity, lowering.experts, Direction::forward);
}

// Two a layer on either side of attention; one at the embedding and one at the head. All-reduces are half as many.
// Those beside the products of a backward leave what is longer than these.
World::TensorParallelSeconds World::tensor_parallel_seconds(const LoweringOptions& lowering, std::int64_t tokens,
                                                            Direction direction) const {
  const std::int64_t tp = parts_->mesh.tp;
  if (tp == 1) return {};
  const Bytes hidden = hidden_bytes(lowering.model, tokens);
  const bool cut = lowering.dense.sequence_parallel;
  const double sum = (cut ? parts_->machine.tp_collective(hidden) : parts_->machine.tp_all_reduce(hidden)).seconds();
  const double gather = cut ? sum : 0;
  if (direction == Direction::forward || !lowering.overlap_tp_gradients) {
    return {.layer = 2 * (gather + sum), .mlp = gather + sum, .ends = gather + sum};
  }
  const double slowdown = parts_->machine.beside_communication.value_or(KernelSlowdown{}).product;
  const Transformer model = with_dense_layers(lowering.model);
  const auto left = [&](DensePart part) {
    const std::vector<Gemm> gemms = dense_work(model, tokens, tp, {part}, direction, lowering.dense).gemms;
    const auto beside = [&](double seconds, const Gemm& product) {
      const Duration alone = parts_->site->cost->gemm(product).time;
      const Duration lost = lost_beside(alone, Duration::seconds(seconds), slowdown);
      return std::max(seconds - alone.seconds(), lost.seconds());
    };
    return beside(gather, gemms.at(gemms.size() - 2)) + beside(sum, gemms.back());
  };
  const double mlp = gather + left(DensePart::mlp);
  return {.layer = mlp + gather + left(DensePart::qkv), .mlp = mlp, .ends = gather + left(DensePart::head)};
}

WorkModel World::work_model(const LoweringOptions& lowering, std::int64_t capacity) const {
  const Transformer& model = lowering.model;
  const Recompute recompute = lowering.recompute;
  const bool attends_again = recompute.has(LayerModule::attention);
  const ExpertLayout& experts = lowering.experts;
  const Machine& machine = parts_->machine;
  const CostModel& cost = *parts_->site->cost;
  const std::int64_t tp = parts_->mesh.tp;
  const auto stages = static_cast<double>(parts_->mesh.pp);
  const auto layers = static_cast<double>(model.layers) / stages;
  const auto tokens = static_cast<double>(capacity);
  double dense = 0;
  double area = 0;
  const auto add_dense = [&](const LinearPart& part, double times) {
    dense += times * cost.linear(part).time.seconds();
  };
  const auto with_experts = static_cast<double>(expert_layers(model, 0, model.layers)) / stages;
  const Transformer dense_model = with_dense_layers(model);
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    const bool is_forward = direction == Direction::forward;
    const double times = layers;
    const double attention_times = layers * (is_forward && attends_again ? 2 : 1);
    const TensorParallelSeconds meetings = tensor_parallel_seconds(lowering, capacity, direction);
    add_dense(before_attention(model, capacity, tp, direction, lowering.dense), times);
    add_dense(after_attention(dense_model, capacity, tp, direction, lowering.dense), times);
    if (with_experts > 0) {
      // In place of the dense MLP, with its two collectives.
      const double share = times * with_experts / layers;
      add_dense(dense_work(dense_model, capacity, tp, {DensePart::mlp}, direction, lowering.dense), -share);
      dense -= share * meetings.mlp;
      dense += share * expert_layer_seconds(model, capacity, experts, direction);
    }
    add_dense(embedding(model, capacity, tp, direction, lowering.dense), 1 / stages);
    add_dense(output_head(model, capacity, tp, direction, lowering.dense), 1 / stages);
    dense += times * meetings.layer + meetings.ends / stages;
    // A ring step of C tokens: half a full square.
    const Attention step{{{capacity, (capacity + 1) / 2, Mask::full, 1}},
                         model.heads / tp,
                         std::max<std::int64_t>(1, model.kv_heads / tp),
                         model.head_dim,
                         direction};
    area += attention_times * cost.attention(step).time.seconds() / (tokens * (tokens + 1) / 2);
  }
  dense += recompute_seconds(lowering, capacity, layers, with_experts);
  WorkModel work;
  work.per_token = dense / tokens;
  work.per_area = area;
  work.per_micro_batch = machine.micro_batch_overhead.seconds();
  if (parts_->mesh.hdp > 1) {
    // The widest hop of the pool: from the last rank to the first.
    const Route route = machine.network->route(machine.placement->device(HdpRank(parts_->mesh.hdp - 1), 0, 0),
                                               machine.placement->device(HdpRank(0), 0, 0));
    const std::int64_t dkv = parts_->site->profile.backward_ring.dkv_bytes_per_element;
    const auto kv = static_cast<double>(kv_bytes(model, capacity, tp).count()) / tokens;
    // Forward KV, again where attention is recomputed; backward KV and dKV.
    const double forward = attends_again ? 2 : 1;
    const double both_ways = kv * (forward + 1 + static_cast<double>(dkv) / 2);
    work.per_ring_token = layers * both_ways / static_cast<double>(route.alone.bytes_per_second());
    work.per_ring_step = layers * (forward + 1) * route.latency.seconds();
  }
  const ActivationRules rules = hdpsim::with_experts({.recompute = recompute,
                                                      .sequence_parallel = lowering.dense.sequence_parallel,
                                                      .autocast = lowering.dense.autocast},
                                                     model, experts);
  const std::vector<KeptTensor> kept = kept_tensors(model, rules);
  const auto all = static_cast<double>(kept_bytes(kept, capacity, tp).count());
  const auto activations = all / tokens;
  work.copied_whole = static_cast<double>(token_wise_bytes(kept, capacity, tp, 0).count()) / all;
  if (!model.moe) work.again_per_token = layers * again_seconds(lowering, capacity) / tokens;
  work.offload_per_token = layers * activations / static_cast<double>(machine.d2h.bytes_per_second());
  return work;
}

}  // namespace hdpsim
