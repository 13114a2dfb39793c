#include "sim/study/point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "sim/base/fingerprint.h"
#include "sim/base/quantity_text.h"
#include "sim/document/reader.h"
#include "sim/study/background.h"
#include "sim/study/capacity.h"
#include "sim/study/failures.h"
#include "sim/study/mesh_options.h"

namespace hdpsim {
namespace {

constexpr double most_tokens = limits::most_tokens_of_sequence;
constexpr Between<Bytes> reserve_range{Bytes(0), limits::memory.most};

class PointReader {
 public:
  PointReader(const Value& study, Catalog& catalog, Diagnostics& diagnostics)
      : study_(study), catalog_(catalog), diagnostics_(diagnostics) {}

  PointSpec read() {
    MapReader study(study_, "the study", diagnostics_);
    if (const Value* model = study.require("model")) read_model(*model);
    if (const Value* cluster = study.require("cluster")) read_cluster(*cluster);
    if (const Value* profile = study.require("profile")) read_profile(*profile);
    if (const Value* kernels = study.find("kernels")) {
      point_.profile = catalog_.profile_with_kernels(*kernels, point_.profile, diagnostics_);
    }
    if (const Value* overheads = study.find("overheads")) {
      point_.profile = catalog_.profile_with_overheads(*overheads, point_.profile, diagnostics_);
    }
    if (point_.profile != nullptr) point_.model.element_bytes = point_.profile->element_bytes;
    if (const Value* data = study.require("data")) read_data(*data);
    const Value* mesh = study.find("mesh");
    const bool mesh_is_known = mesh != nullptr && read_mesh(*mesh, point_, diagnostics_);
    (void)study.find("moe");
    point_.experts = read_experts(study_, point_.model, point_.mesh.ep, diagnostics_);
    check_expert_groups(study_, point_, mesh_is_known, diagnostics_);
    if (const Value* memory = study.find("memory")) read_memory(*memory);
    if (const Value* grain = study.find("grain")) {
      const auto choice = read_choice(*grain, "grain", {"fluid", "exact", "closed_form"}, diagnostics_);
      point_.grain = std::array{Grain::fluid, Grain::exact, Grain::closed_form}.at(choice.value_or(0));
    }
    if (const Value* noise = study.find("noise")) point_.conditions.noise = read_noise(*noise, diagnostics_);
    if (const Value* faults = study.find("faults")) {
      point_.conditions.faults = read_faults(*faults, point_.cluster, point_.steps, diagnostics_);
    }
    if (const Value* failures = study.find("failures")) point_.failures = read_failures(*failures, diagnostics_);
    if (const Value* uncertainty = study.find("uncertainty")) {
      point_.uncertainty = read_uncertainty(*uncertainty, diagnostics_);
    }
    if (const Value* loading = study.find("loading")) point_.loading = read_loading(*loading, diagnostics_);
    if (const Value* planner = study.find("planner")) read_planner(*planner);
    for (const std::string_view key : whole_study_keys) (void)study.find(key);
    for (const std::string_view key : {"sweep", "background"}) (void)study.find(key);
    study.finish();
    return std::move(point_);
  }

 private:
  void read_model(const Value& value) {
    if (auto model = catalog_.model(value, diagnostics_)) point_.model = std::move(*model);
  }

  void read_cluster(const Value& value) {
    if (auto cluster = catalog_.cluster(value, diagnostics_)) point_.cluster = std::move(*cluster);
  }

  void read_profile(const Value& value) {
    point_.profile = catalog_.profile(value, diagnostics_);
    const std::string& device = point_.cluster.device;
    if (point_.profile == nullptr || device.empty() || point_.profile->provenance.device == device) return;
    diagnostics_.error(
        value.position,
        fmt::format("the profile is of a {}, the cluster has {}", point_.profile->provenance.device, device),
        "choose another profile, or set the cluster's 'device'");
  }

  void read_data(const Value& value) {
    MapReader data(value, "the data", diagnostics_);
    if (const Value* lengths = data.require("lengths")) {
      if (auto read = catalog_.lengths(*lengths, diagnostics_)) point_.lengths = std::move(*read);
    }
    BatchOptions& batch = point_.batch;
    batch.context = data.required_in<std::int64_t>("context", {1, most_tokens}).value_or(0);
    batch.tokens_per_step =
        data.required_in<std::int64_t>("tokens_per_step", {1, limits::most_tokens_of_step}).value_or(0);
    point_.steps = data.required_in<std::int64_t>("steps", {1, 1e6}).value_or(0);
    batch.seed = static_cast<std::uint64_t>(data.optional_in<std::int64_t>("seed", {0, 9e15}).value_or(1));
    if (const Value* overlong = data.find("overlong")) {
      const auto choice =
          read_choice(*overlong, "way with overlong sequences", {"split", "truncate", "drop"}, diagnostics_);
      batch.overlong = std::array{Overlong::split, Overlong::truncate, Overlong::drop}.at(choice.value_or(0));
    }
    data.finish();
    if (batch.context > 0 && batch.tokens_per_step > 0 && batch.tokens_per_step < batch.context) {
      diagnostics_.error(value.find("tokens_per_step")->position,
                         fmt::format("a step of {} tokens cannot hold a sequence of the context, {}",
                                     count_text(batch.tokens_per_step), count_text(batch.context)),
                         "use a larger 'tokens_per_step' or a shorter 'context'");
    }
  }

  void read_memory(const Value& value) {
    MapReader memory(value, "the memory", diagnostics_);
    MemoryRules& rules = point_.memory;
    if (const Value* loss = memory.find("loss")) {
      rules.fused_loss = read_choice(*loss, "way to compute the loss", {"fused", "fp32"}, diagnostics_) != 1;
    }
    rules.fragmentation = memory.optional_in<double>("fragmentation", {0, 1}).value_or(rules.fragmentation);
    const Value* reserve = memory.find("reserve");
    if (reserve != nullptr && reserve->text != "auto") {
      rules.reserve = read_in<Bytes>(*reserve, "'reserve'", reserve_range, diagnostics_);
    }
    memory.finish();
  }

  void read_planner(const Value& value) {
    MapReader planner(value, "the planner", diagnostics_);
    const Value* knows = planner.find("knows");
    planner.finish();
    if (knows == nullptr) return;
    if (!knows->is_sequence()) {
      diagnostics_.error(knows->position, "what planners know must be a list", "write knows: [speeds, faults]");
    }
    for (const Value& item : knows->items) {
      const auto choice = read_choice(item, "thing to know", {"speeds", "faults"}, diagnostics_);
      if (choice == 0) point_.knows.speeds = true;
      if (choice == 1) point_.knows.faults = true;
    }
  }

  const Value& study_;
  Catalog& catalog_;
  Diagnostics& diagnostics_;
  PointSpec point_;
};

std::string text_of(const MixtureOfExperts& moe) {
  return fmt::format(" {} {} {} {} {} [{}]", moe.experts, moe.experts_per_token, moe.expert_hidden, moe.shared_hidden,
                     moe.shared_gate, fmt::join(moe.dense_layers, " "));
}

// All of a model that costs depend on.
std::string text_of(const Transformer& model) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}{}", model.name, model.layers, model.hidden, model.heads,
                     model.kv_heads, model.head_dim, model.ffn_hidden, model.vocabulary, model.gated_mlp,
                     model.tied_embeddings, model.biases, model.learned_positions, model.qkv_biases, model.qk_norm,
                     model.moe ? text_of(*model.moe) : "");
}

void choose_capacity(const Value& study, PointSpec& point, Diagnostics& diagnostics) {
  if (const auto tokens = largest_capacity(point)) {
    point.capacity = *tokens;
  } else {
    report_no_capacity(point, study.find("mesh")->find("capacity")->position, diagnostics);
  }
}

}  // namespace

std::int64_t layers_of_pass(const PointSpec& spec) {
  return spec.model.layers / (spec.mesh.pp * spec.pipeline.virtual_stages);
}

LoweringOptions lowering_of(const PointSpec& spec) {
  return {.model = spec.model,
          .mesh = spec.mesh,
          .dkv_bytes_per_element = spec.profile->backward_ring.dkv_bytes_per_element,
          .recompute = spec.recompute,
          .pipeline = spec.pipeline,
          .experts = spec.experts.layout,
          .dense = {.sequence_parallel = spec.memory.activations.sequence_parallel,
                    .fp8 = spec.profile->fp8_linear,
                    .autocast = spec.sharding.fp32_parameters,
                    .flat_gradients = spec.sharding.zero == 3,
                    .added_bytes = spec.accumulation_fusion ? 0 : spec.sharding.gradient_bytes,
                    .fp32_loss = !spec.memory.fused_loss},
          .sharding = spec.sharding,
          .overlap_tp = spec.overlap_tp,
          .overlap_tp_gradients = spec.overlap_tp_gradients,
          .host_issues = spec.profile->overheads.host_issue.has_value()};
}

MemoryRules memory_rules_of(const PointSpec& spec) {
  MemoryRules rules = spec.memory;
  rules.activations.recompute = spec.recompute;
  rules.activations.autocast = spec.sharding.fp32_parameters;
  rules.activations = with_experts(rules.activations, spec.model, spec.experts.layout);
  return rules;
}

FlopRate mean_peak(const PointSpec& spec) {
  const FlopRate peak = spec.profile->datasheet.peak;
  const ClusterSpec& cluster = spec.cluster;
  if (cluster.speed.empty() && cluster.kinds.empty()) return peak;
  const std::int64_t devices = spec.nodes.devices(cluster);
  double sum = 0;
  for (std::int64_t place = 0; place < devices; ++place) {
    const DeviceId device = spec.nodes.device(static_cast<std::size_t>(place), cluster.devices_per_node);
    sum += std::max(1.0, cluster.speed_of(device));
  }
  return FlopRate(peak.per_second() * (sum / static_cast<double>(devices)));
}

std::optional<PointSpec> read_point(const Value& study, Catalog& catalog, Diagnostics& diagnostics) {
  Diagnostics found;
  PointSpec point = PointReader(study, catalog, found).read();
  point.background = read_background(study, point, catalog, found);
  if (found.empty() && point.capacity_is_chosen) choose_capacity(study, point, found);
  diagnostics.append(found);
  if (!found.empty()) return std::nullopt;
  point.fingerprint = catalog.fingerprint(*study.find("data")->find("lengths"), point.profile);
  point.fingerprint = fingerprint(text_of(point.model), point.fingerprint);
  point.fingerprint = fingerprint(fmt::format("{}", fmt::join(point.experts.layout.shares, " ")), point.fingerprint);
  for (const BackgroundSpec& other : point.background) {
    if (other.job == nullptr) continue;
    point.fingerprint = fingerprint(fmt::format("{:016x}", other.job->fingerprint), point.fingerprint);
  }
  return point;
}

}  // namespace hdpsim
