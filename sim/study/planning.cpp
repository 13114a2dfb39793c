#include "sim/study/planning.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "sim/model/kept_tensors.h"
#include "sim/plan/expert_waves.h"
#include "sim/study/capacity.h"

namespace hdpsim {
namespace {

// A device's share of host memory, as the number of tokens whose activations of all layers fit there.
std::optional<std::int64_t> host_tokens(const PointSpec& spec) {
  const Bytes share = spec.cluster.least_host_memory() / spec.cluster.devices_per_node;
  const Bytes activations =
      kept_bytes(kept_tensors(spec.model, recipe_of(spec), expert_use_of(spec)), spec.capacity, spec.mesh.tp) *
      spec.model.layers;
  if (share.count() == 0 || activations.count() == 0) return std::nullopt;
  const double tokens = static_cast<double>(share.count()) / static_cast<double>(activations.count());
  return static_cast<std::int64_t>(tokens * static_cast<double>(spec.capacity));
}

// The speed of the slowest device of every rank, by the speeds and faults that planners know. Empty if they know
// neither.
std::function<std::vector<double>(std::int64_t)> known_speeds(const PointSpec& spec, const Job& on) {
  if (!spec.knows.speeds && !spec.knows.faults) return {};
  const std::vector<DeviceId> devices = on.devices();
  const std::size_t per_rank = devices.size() / static_cast<std::size_t>(spec.mesh.hdp);
  std::vector<double> of_cluster;
  of_cluster.reserve(devices.size());
  for (const DeviceId device : devices) of_cluster.push_back(spec.knows.speeds ? spec.cluster.speed_of(device) : 1.0);
  const DeviceConditions conditions{{}, spec.knows.faults ? spec.conditions.faults : std::vector<Fault>{}};
  return [=, count = spec.cluster.devices](std::int64_t step) {
    const std::vector<double> factors = fault_factors(conditions, count, step);
    std::vector<double> speeds(devices.size() / per_rank, std::numeric_limits<double>::infinity());
    for (std::size_t i = 0; i < devices.size(); ++i) {
      speeds[i / per_rank] = std::min(speeds[i / per_rank], of_cluster[i] / factors[devices[i].index()]);
    }
    return speeds;
  };
}

}  // namespace

PlanningContext planning_context(const PointSpec& spec, const Job& on) {
  return {.ranks = spec.mesh.hdp,
          .ranks_per_node = on.ranks_per_node(),
          .capacity = spec.capacity,
          .context = spec.batch.context,
          .layers = layers_of_pass(spec),
          .stages = spec.mesh.pp,
          .work = on.work_model(lowering_of(spec), spec.capacity),
          .expert_ranks = expert_ranks(spec.mesh.ep, spec.mesh.tp),
          .expert_padding = spec.experts.across == ExpertSpan::padding ? spec.capacity : 0,
          .host_tokens = host_tokens(spec),
          .offload_room = spec.capacity_is_chosen ? std::optional(offload_room(spec)) : std::nullopt,
          .rank_speeds = known_speeds(spec, on)};
}

}  // namespace hdpsim
