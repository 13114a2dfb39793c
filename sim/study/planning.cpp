#include "sim/study/planning.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "sim/model/kept_tensors.h"
#include "sim/model/layers.h"
#include "sim/model/sharing_form.h"
#include "sim/model/work.h"
#include "sim/plan/expert_waves.h"
#include "sim/program/schedule.h"
#include "sim/study/capacity.h"

namespace hdpsim {
namespace {

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

// The speed of the slowest device of every rank of the job, by the speeds and faults that planners know. Empty if they
// know neither.
std::function<std::vector<double>(std::int64_t)> known_speeds(const Job& on, std::int64_t ranks,
                                                              const PlannerKnowledge& knows, const ClusterSpec& cluster,
                                                              const std::vector<Fault>& faults) {
  if (!knows.speeds && !knows.faults) return {};
  const std::vector<DeviceId> devices = on.devices();
  const std::size_t per_rank = devices.size() / static_cast<std::size_t>(ranks);
  std::vector<double> of_cluster;
  of_cluster.reserve(devices.size());
  for (const DeviceId device : devices) of_cluster.push_back(knows.speeds ? cluster.speed_of(device) : 1.0);
  const DeviceConditions conditions{{}, knows.faults ? faults : std::vector<Fault>{}};
  return [=, count = cluster.devices](std::int64_t step) {
    const std::vector<double> factors = fault_factors(conditions, count, step);
    std::vector<double> speeds(devices.size() / per_rank, std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      speeds[i / per_rank] = std::min(speeds[i / per_rank], of_cluster[i] / factors[devices[i].index()]);
    }
    return speeds;
  };
}

ServedBytes served_bytes(const Transformer& model, std::int64_t tp) {
  const Bytes query = query_bytes(model, 1, tp) + attention_output_bytes(model, 1, tp);
  return {query.count(), kv_bytes(model, 1, tp).count()};
}

// No micro-batch has more tokens than a step: larger probes would tell of what does not occur.
std::int64_t probed_tokens(const PointSpec& spec) {
  const std::int64_t step = spec.batch.tokens_per_step;
  return step > 0 ? std::min(spec.capacity, step) : spec.capacity;
}

}  // namespace

PlanningContext planning_context(const PointSpec& spec, const Job& on) {
  const LoweringOptions job = lowering_of(spec);
  const bool offloads = spec.capacity_is_chosen;
  return {.ranks = spec.mesh.hdp,
          .ranks_per_node = on.ranks_per_node(),
          .capacity = spec.capacity,
          .context = spec.batch.context,
          .layers = layers_of_pass(job),
          .stages = spec.mesh.pp,
          .runs_chunks_in_order = spec.mesh.pp == 1 || find_schedule(job.pipeline.schedule)->runs_chunks_in_order,
          .not_served = sharing_form(KeyExchange::servers).problem(job.model, job.recipe),
          .served_bytes = served_bytes(job.model, job.mesh.tp),
          .work = on.work_model(job, probed_tokens(spec)),
          .expert_ranks = expert_ranks(spec.mesh.ep, spec.mesh.tp),
          .expert_padding = spec.experts.across == ExpertSpan::padding ? spec.capacity : 0,
          .host_tokens = host_tokens(spec.cluster.least_host_share(), job, spec.capacity),
          .offload_room =
              offloads ? std::optional(offload_room(job, room_of(spec), spec.batch, spec.capacity)) : std::nullopt,
          .rank_speeds = known_speeds(on, spec.mesh.hdp, spec.knows, spec.cluster, spec.conditions.faults)};
}

}  // namespace hdpsim
