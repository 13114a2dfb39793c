#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/quantity_text.h"
#include "sim/model/kept_tensors.h"
#include "sim/model/layers.h"
#include "sim/model/work.h"
#include "sim/profile/profile_file.h"
#include "sim/study/node_options.h"
#include "sim/study/sharing_choice.h"
#include "sim/study/study.h"
#include "sim/study/study_notes.h"

namespace hdpsim {
namespace {

// The measurements that would improve a family: the most frequent shapes of a full micro-batch.
std::array<std::string, cost_families> advice_for(const LoweringOptions& job, std::int64_t capacity) {
  const Transformer model = of_attention(job.model);
  const std::int64_t tp = job.mesh.tp;
  const std::string heads = fmt::format("{} heads of {} and {} key-value heads", model.heads / tp, model.head_dim,
                                        std::max<std::int64_t>(1, model.kv_heads / tp));
  const auto attention = [&](std::string_view direction) {
    return fmt::format("calibrate attention {} at blocks of {} x {} and up to {} tokens, {}", direction,
                       count_text(capacity), count_text((capacity + 1) / 2), count_text(capacity), heads);
  };
  const Bytes keys_and_values = kv_bytes(model, capacity, tp);
  const Bytes hidden = hidden_bytes(model, capacity);
  return {attention("forward"),
          attention("backward"),
          fmt::format("calibrate matrix products of {} rows, {} wide", count_text(capacity), model.hidden),
          fmt::format("calibrate memory-bound kernels of {}", bytes_text(hidden / tp)),
          fmt::format("calibrate messages of {}", bytes_text(keys_and_values)),
          fmt::format("calibrate all-gathers of {} among {} GPUs", bytes_text(hidden), tp),
          fmt::format("calibrate host copies of {}",
                      bytes_text(activation_bytes(model, capacity, tp, job.recipe.recompute)))};
}

UncertaintyModel uncertainty_model(const UncertaintyOptions& options, const DeviceProfile& profile,
                                   const LoweringOptions& job, std::int64_t capacity, std::int64_t nodes) {
  UncertaintyModel model{.samples = options.samples,
                         .seed = options.seed,
                         .errors = errors_of(options, profile, of_attention(job.model).head_dim),
                         .slow_nodes = options.slow_nodes,
                         .nodes = nodes,
                         .advice = advice_for(job, capacity)};
  const std::vector<OpenParameter> resampled = resampled_parameters(options, profile);
  model.fitted = correlation_root(resampled, profile);
  for (const OpenParameter& open : resampled) {
    for (const CostFamily family : open.parameter->families) model.of_fitted[static_cast<std::size_t>(family)] = true;
  }
  return model;
}

// Where a plan is named.
const Position& place_of_plan(const Value& entry) {
  return entry.is_map() && entry.entries.size() == 1 ? entry.entries.front().position : entry.position;
}

}  // namespace

RunInfo Study::run_info(std::size_t point, std::size_t plan) const {
  const StudyPoint& at = points.at(point);
  const PointSpec& spec = at.spec;
  const DeviceProfile& profile = *spec.profile;
  const LoweringOptions job = lowering_of(spec);
  std::vector<RunInfo::Neighbour> background;
  for (const BackgroundSpec& other : spec.background) {
    background.push_back({other.name, other.what(), other.gpus(spec.cluster)});
  }
  return {.point = point,
          .coordinates = at.coordinates,
          .plan = plans.at(plan).name,
          .place = place_of_plan(plans[plan].entry),
          .setting = spec.setting(),
          .profile = fmt::format("{} ({})", profile.name, profile_label_name(profile.provenance.label)),
          .background = std::move(background),
          .gpus = spec.mesh.devices(),
          .stages = spec.mesh.pp,
          .peak = mean_peak(profile.datasheet.peak, spec.cluster, spec.nodes),
          .device_memory = spec.cluster.least_device_memory(),
          .host_memory = spec.cluster.least_host_share(),
          .capacity = spec.capacity,
          .trace = at.batches->use(spec.steps),
          .not_modelled = not_modelled(profile, layout_of(spec), spec.recipe),
          .nodes = spec.nodes.count(spec.cluster),
          .placed = placed_groups(spec),
          .failures = spec.failures,
          .uncertainty = spec.uncertainty
                             ? std::optional(uncertainty_model(*spec.uncertainty, profile, job, spec.capacity,
                                                               spec.nodes.count(spec.cluster)))
                             : std::nullopt,
          .errors = spec.errors,
          .sharing = std::string(word_of(spec.recipe.key_exchange)),
          .cut = std::string(word_of(spec.cut))};
}

}  // namespace hdpsim
