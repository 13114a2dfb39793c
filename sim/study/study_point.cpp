#include "sim/study/study_point.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/model/kept_tensors.h"
#include "sim/model/layers.h"
#include "sim/model/memory.h"
#include "sim/model/sharing_form.h"
#include "sim/model/work.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/plan_check.h"
#include "sim/program/chunk_map.h"
#include "sim/program/schedule.h"
#include "sim/program/schedule_time.h"
#include "sim/study/capacity.h"
#include "sim/study/sharing_choice.h"

namespace hdpsim {
namespace {

constexpr double most_nudge = 0.5;  // a family that takes no time, or twice its time, says nothing of small errors

std::unique_ptr<World> accepted_world(const ClusterSpec& cluster, const DeviceProfile& profile, const JobLayout& layout,
                                      const std::vector<BackgroundSpec>& background) {
  Diagnostics found;
  std::unique_ptr<World> made = world_of(cluster, profile, layout, background, found);
  HDPSIM_CHECK(made != nullptr, "a world that was accepted is refused: {}", found.text());
  return made;
}

StepBounds bounds_with(std::int64_t capacity, const StudyPoint& point, const Batch& batch) {
  const Mesh& mesh = point.spec.mesh;
  return step_bounds(batch, {.ranks = mesh.hdp, .capacity = capacity, .stages = mesh.pp}, point.work);
}

// The conditions of a step with one slow node more.
DeviceConditions with_slow_node(const DeviceConditions& devices, NodeId node, const ClusterSpec& cluster,
                                double slowdown) {
  DeviceConditions slower = devices;
  const auto first = static_cast<std::int64_t>(node.index()) * cluster.devices_per_node;
  slower.faults.push_back({.first_device = first,
                           .last_device = first + cluster.devices_per_node - 1,
                           .to_step = std::numeric_limits<std::int64_t>::max(),
                           .slowdown = slowdown});
  return slower;
}

// What the host keeps of the states of the device that has most of them there, but no more than its share.
Bytes host_states(const LoweringOptions& job, Bytes share) {
  if (job.recipe.host.optimizer == 0 && !job.recipe.host.parameters) return {};
  const auto schedule = make_schedule(job.pipeline, job.mesh.pp);
  const ChunkMap chunks(*schedule, job.pipeline.split);
  const DeviceShape shape{.tp = job.mesh.tp, .pool = job.mesh.ranks_of_a_shard_group()};
  Bytes most;
  for (std::int64_t stage = 0; stage < chunks.stages(); ++stage) {
    const DeviceMemory device(job.model, stage_shape(job.model, shape, chunks, stage), job.recipe,
                              expert_use(job.model, job.experts));
    most = std::max(most, device.host_states());
  }
  return std::min(most, share);
}

// A device's share of host memory, as the number of tokens whose activations of all layers fit there.
std::optional<std::int64_t> host_tokens(Bytes share, const LoweringOptions& job, std::int64_t capacity) {
  const GroupSharing pool = group_sharing(job.model, job.recipe, job.mesh.tp, job.mesh.hdp);
  const bool trades = form_of(pool).keeps_traded(pool);
  Bytes activations;
  for (const LayerRun& run : layer_runs(job.model)) {
    const auto kept = kept_tensors(of_kind(job.model, run.kind), job.recipe, expert_use(job.model, job.experts));
    activations += kept_bytes(kept, {.tokens = capacity, .tp = job.mesh.tp, .trades_heads = trades}) * run.count;
  }
  if (share.count() == 0 || activations.count() == 0) return std::nullopt;
  const double tokens = static_cast<double>(share.count()) / static_cast<double>(activations.count());
  return static_cast<std::int64_t>(tokens * static_cast<double>(capacity));
}

/// The speed by part of a job in a step.
using KnownSpeedsOf = std::function<std::vector<double>(std::int64_t step)>;

// That of the slowest device of each of so many equal parts of the job's devices, by the speeds and faults that
// planners know. Empty if they know neither.
KnownSpeedsOf known_speeds(const Job& on, std::int64_t parts, const PointSpec& spec) {
  const PlannerKnowledge& knows = spec.knows;
  if (!knows.speeds && !knows.faults) return {};
  const std::vector<DeviceId> devices = on.devices();
  const std::size_t per_part = devices.size() / static_cast<std::size_t>(parts);
  std::vector<double> of_cluster;
  of_cluster.reserve(devices.size());
  for (const DeviceId device : devices) of_cluster.push_back(knows.speeds ? spec.cluster.speed_of(device) : 1.0);
  const DeviceConditions conditions{{}, knows.faults ? spec.conditions.faults : std::vector<Fault>{}};
  return [=, count = spec.cluster.devices](std::int64_t step) {
    const std::vector<double> factors = fault_factors(conditions, count, step);
    std::vector<double> speeds(devices.size() / per_part, std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      speeds[i / per_part] = std::min(speeds[i / per_part], of_cluster[i] / factors[devices[i].index()]);
    }
    return speeds;
  };
}

ServedBytes served_bytes(const Transformer& model, std::int64_t tp) {
  const Bytes query = query_bytes(model, 1, tp) + attention_output_bytes(model, 1, tp);
  return {query.count(), kv_bytes(model, 1, tp).count()};
}

// As slime counts (THUDM/slime 624b824a, the workloads of build_dp_schedule): the product behind attention as if heads
// were as wide together as the model, the chosen and the shared experts, and one matrix of the vocabulary.
CountedFlops counted_flops(const Transformer& model) {
  CountedFlops flops{2 * model.hidden * model.vocabulary, 0};
  const std::int64_t h = model.hidden;
  for (const LayerRun& run : layer_runs(model)) {
    const Transformer layer = of_kind(model, run.kind);
    const std::int64_t width = layer.moe
                                   ? layer.moe->experts_per_token * layer.moe->expert_hidden + layer.moe->shared_hidden
                                   : layer.ffn_hidden;
    const std::int64_t queries = layer.heads * layer.head_dim;
    const std::int64_t keys = layer.kv_heads * layer.head_dim;
    flops.linear += run.count * (2 * h * queries + 4 * h * keys + 2 * h * h + 6 * h * width);
    flops.square += run.count * 2 * queries;
  }
  return flops;
}

// No micro-batch has more tokens than a step: larger probes would tell of what does not occur.
std::int64_t probed_tokens(const PointSpec& spec) {
  const std::int64_t step = spec.batch.tokens_per_step;
  return step > 0 ? std::min(spec.capacity, step) : spec.capacity;
}

std::function<double(const Plan&, std::span<const PassSeconds>)> seconds_in_order(const PointSpec& spec, const Job& on,
                                                                                  const WorkModel& work) {
  if (spec.mesh.pp == 1 && expert_ranks(spec.mesh.experts(), spec.mesh.tp) == 1) return {};
  return [stages = spec.mesh.pp, options = spec.pipeline, excess = work.chunk_excess,
          speeds = known_speeds(on, spec.mesh.hdp * spec.mesh.pp, spec)](const Plan& plan,
                                                                         std::span<const PassSeconds> seconds) {
    return schedule_seconds(Pipeline(plan, stages, options), seconds, excess,
                            speeds ? speeds(plan.step) : std::vector<double>{});
  };
}

}  // namespace

PlanningContext planning_context(const PointSpec& spec, const Job& on) {
  const LoweringOptions job = lowering_of(spec);
  const bool offloads = spec.capacity_is_chosen;
  const Bytes share = spec.cluster.least_host_share();
  auto speeds = known_speeds(on, spec.mesh.hdp, spec);
  WorkModel work = on.work_model(job, probed_tokens(spec));
  auto in_order = seconds_in_order(spec, on, work);
  return {.ranks = spec.mesh.hdp,
          .ranks_per_node = on.ranks_per_node(),
          .capacity = spec.capacity,
          .context = spec.batch.context,
          .layers = layers_of_pass(job),
          .stages = spec.mesh.pp,
          .runs_chunks_in_order = spec.mesh.pp == 1 || find_schedule(job.pipeline.schedule)->runs_chunks_in_order,
          .not_served = sharing_form(KeyExchange::servers).problem(job.model, job.recipe),
          .served_bytes = served_bytes(job.model, job.mesh.tp),
          .counted_flops = counted_flops(job.model),
          .tp = job.mesh.tp,
          .work = std::move(work),
          .expert_ranks = expert_ranks(spec.mesh.experts(), spec.mesh.tp),
          .expert_padding = spec.experts.across == ExpertSpan::padding ? spec.capacity : 0,
          .host_tokens = host_tokens(share - host_states(job, share), job, spec.capacity),
          .offload_room =
              offloads ? std::optional(offload_room(job, room_of(spec), spec.batch, spec.capacity)) : std::nullopt,
          .rank_speeds = std::move(speeds),
          .seconds_in_order = std::move(in_order)};
}

std::shared_ptr<const WorkModel> work_in_any_way(const WorkModel& own, const PointSpec& spec, const Job& on) {
  if (spec.mesh.hdp == 1 || spec.cut != TokenCut::per_document) return nullptr;
  WorkModel work = own;
  for (const SharingChoice& sharing : allowed_sharings(spec)) {
    if (sharing.exchange == own.exchange || sharing.cut != TokenCut::per_document) continue;
    if (!passes_all(sharing.exchange)) continue;
    LoweringOptions job = lowering_of(spec);
    job.recipe.key_exchange = sharing.exchange;
    if (!holds_capacity(job, room_of(spec), spec.batch, spec.capacity)) continue;
    work.others.push_back(on.work_model(job, probed_tokens(spec)));
  }
  return work.others.empty() ? nullptr : std::make_shared<const WorkModel>(std::move(work));
}

std::unique_ptr<World> world_of(const ClusterSpec& cluster, const DeviceProfile& profile, const JobLayout& layout,
                                const std::vector<BackgroundSpec>& background, Diagnostics& diagnostics) {
  auto world = World::make(cluster, profile, layout, diagnostics);
  if (world == nullptr) return nullptr;
  for (const BackgroundSpec& other : background) {
    if (other.job != nullptr && !world->add_neighbour(layout_of(*other.job), diagnostics)) return nullptr;
  }
  return world;
}

Plan StudyNeighbour::plan(std::int64_t step) const {
  Plan made = planner->plan((held_back ? *held_back : *batches).step(step), step);
  require_sound(made);
  return made;
}

PlanRefused::PlanRefused(const InputError& said, std::int64_t step) : InputError(said) {
  const Diagnostic first = said.diagnostics().sorted().front();
  refusal_ = {step, first.message, first.help};
}

Flops PointStep::model_flops() const {
  const PointSpec& spec = point.spec;
  return hdpsim::model_flops(spec.model, batch, kept_copies(spec.model, point.lowering().experts), spec.recipe);
}

double StudyPoint::estimate(const Plan& plan) const {
  return estimated_step(plan, work, spec.mesh.pp, spec.pipeline);
}

StepBounds PointStep::bounds() const {
  const bool offloads = std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(),
                                    [](const MicroBatch& micro_batch) { return micro_batch.offloads(); });
  const std::int64_t held = std::max(point.spec.capacity, plan.capacity);  // a plan from a file may exceed it
  const std::int64_t capacity = offloads ? std::max(held, batch.tokens()) : held;
  StepBounds bounds = bounds_that_hold(bounds_with(capacity, point, batch), plan);
  bounds.fill = 0;
  return bounds;
}

Duration PointStep::bound(const std::vector<double>& speeds) const {
  const StepBounds least = bounds();
  const double sum = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  const double mean = std::max(1.0, sum / static_cast<double>(speeds.size()));
  const double fastest = std::max(1.0, *std::max_element(speeds.begin(), speeds.end()));
  return Duration::seconds(
      std::max(std::max({least.area, least.memory, least.capacity}) / mean, least.longest / fastest));
}

const BatchSource& StudyPoint::batches_of(std::size_t plan) const {
  const BatchSourcePtr& own = held_back.at(plan);
  return own ? *own : *batches;
}

PointStep StudyPoint::planned(std::size_t plan, std::int64_t step, Batch batch) const {
  try {
    Plan made = planners.at(plan)->plan(batch, step);
    return {*this, std::move(batch), std::move(made)};
  } catch (const InputError& said) {
    throw PlanRefused(said, step);
  }
}

StepBounds StudyPoint::bounds(const Batch& batch) const {
  return bounds_with(spec.capacity, *this, batch);
}

UncertaintyProbes StudyPoint::probes() const {
  const UncertaintyOptions& options = *spec.uncertainty;
  UncertaintyProbes probes;
  const auto probe = [&](const auto& change) {
    return StepProbe{[this, change] { return make_world(change); }, spec.conditions};
  };
  const FamilyErrors errors = errors_of(options, *spec.profile, of_attention(spec.model).head_dim);
  for (std::size_t family = 0; family < cost_families; ++family) {
    const double change = std::min(most_nudge, nudge(errors[family]));
    FamilyFactors dearer;
    FamilyFactors cheaper;
    dearer[static_cast<CostFamily>(family)] = 1 + change;
    cheaper[static_cast<CostFamily>(family)] = 1 - change;
    probes.families.push_back({change, probe(dearer), probe(cheaper)});
  }
  for (const NodeId node : probed_nodes(options, spec.nodes, spec.cluster)) {
    probes.slow_nodes.push_back({[this] { return make_world(); },
                                 with_slow_node(spec.conditions, node, spec.cluster, options.slow_nodes.slowdown)});
  }
  for (const OpenParameter& open : resampled_parameters(options, *spec.profile)) {
    for (const double end : {open.fitted.p5, open.fitted.p95}) {
      probes.fitted.push_back(probe(open.at(*spec.profile, end)));
    }
  }
  for (const ClusterSpec& other : rerouted(options, spec.cluster)) probes.routes.push_back(probe(other));
  return probes;
}

std::unique_ptr<World> StudyPoint::make_world() const {
  return make_world(spec.cluster);
}

std::unique_ptr<World> StudyPoint::make_world(const ClusterSpec& cluster) const {
  return make_world(cluster, *spec.profile);
}

std::unique_ptr<World> StudyPoint::make_world(const FamilyFactors& factors) const {
  DeviceProfile profile = *spec.profile;
  profile.factors *= factors;
  return make_world(profile);
}

std::unique_ptr<World> StudyPoint::make_world(const DeviceProfile& profile) const {
  return make_world(spec.cluster, profile);
}

std::unique_ptr<World> StudyPoint::make_world(const ClusterSpec& cluster, const DeviceProfile& profile) const {
  return accepted_world(cluster, profile, layout_of(spec), spec.background);
}

}  // namespace hdpsim
