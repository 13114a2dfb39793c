#include "sim/study/point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/base/fingerprint.h"
#include "sim/document/reader.h"
#include "sim/study/background.h"
#include "sim/study/capacity.h"
#include "sim/study/data_options.h"
#include "sim/study/failures.h"
#include "sim/study/memory_options.h"
#include "sim/study/mesh_options.h"
#include "sim/study/point_keys.h"
#include "sim/study/study_keys.h"

namespace hdpsim {
namespace {

class PointReader {
 public:
  PointReader(const Value& study, Catalog& catalog, Diagnostics& diagnostics)
      : study_(study), catalog_(catalog), diagnostics_(diagnostics) {}

  PointSpec read() {
    MapReader study(study_, "the study", diagnostics_);
    for (const StudySection& section : study_sections()) (void)study.find(section.text.name);  // all are known
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
    if (const Value* data = study.require("data")) take(read_data(*data, catalog_, diagnostics_));
    const Value* mesh = study.find("mesh");
    const bool mesh_is_known = mesh != nullptr && read_mesh(*mesh, point_, diagnostics_);
    point_.experts = read_experts(study_, point_.model, point_.mesh.ep, diagnostics_);
    check_expert_groups(study_, point_, mesh_is_known, diagnostics_);
    if (const Value* memory = study.find("memory")) read_memory(*memory, point_.recipe, diagnostics_);
    if (const Value* grain = study.find("grain")) read_grain(*grain, point_, diagnostics_);
    read_conditions(study);
    if (const Value* planner = study.find("planner")) read_planner(*planner, point_.knows, diagnostics_);
    study.finish();
    return std::move(point_);
  }

 private:
  void read_conditions(MapReader& study) {
    if (const Value* noise = study.find("noise")) point_.conditions.noise = read_noise(*noise, diagnostics_);
    if (const Value* faults = study.find("faults")) {
      point_.conditions.faults = read_faults(*faults, point_.cluster, point_.steps, diagnostics_);
    }
    if (const Value* failures = study.find("failures")) point_.failures = read_failures(*failures, diagnostics_);
    if (const Value* uncertainty = study.find("uncertainty")) {
      point_.uncertainty = read_uncertainty(*uncertainty, diagnostics_);
    }
    if (const Value* loading = study.find("loading")) point_.loading = read_loading(*loading, diagnostics_);
  }

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

  void take(DataOptions&& data) {
    point_.lengths = std::move(data.lengths);
    point_.batch = data.batch;
    point_.steps = data.steps;
  }

  const Value& study_;
  Catalog& catalog_;
  Diagnostics& diagnostics_;
  PointSpec point_;
};

// A text of all of a model, since costs may depend on any of it: a new member does not compile here until it is listed.
// The bytes of an element come from the profile, which has a fingerprint of its own.
std::string text_of(const MixtureOfExperts& model) {
  const auto& [experts, experts_per_token, expert_hidden, shared_hidden, shared_gate, dense_layers] = model;
  return fmt::format(" {} {} {} {} {} [{}]", experts, experts_per_token, expert_hidden, shared_hidden, shared_gate,
                     fmt::join(dense_layers, " "));
}

std::string text_of(const Transformer& model) {
  const auto& [name, layers, hidden, heads, kv_heads, head_dim, ffn_hidden, vocabulary, gated_mlp, tied_embeddings, moe,
               biases, learned_positions, qkv_biases, qk_norm, element_bytes] = model;
  const auto all = std::tie(name, layers, hidden, heads, kv_heads, head_dim, ffn_hidden, vocabulary, gated_mlp,
                            tied_embeddings, biases, learned_positions, qkv_biases, qk_norm);
  return fmt::format("{}{}", fmt::join(all, " "), moe ? text_of(*moe) : "");
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
  return spec.model.layers / make_schedule(spec.pipeline, spec.mesh.pp)->chunks();
}

Recipe recipe_of(const PointSpec& spec) {
  Recipe recipe = spec.recipe;
  recipe.fp8 = spec.profile->fp8_linear;
  recipe.dkv_bytes_per_element = spec.profile->backward_ring.dkv_bytes_per_element;
  recipe.host_issues = spec.profile->overheads.host_issue.has_value();
  return recipe;
}

ExpertUse expert_use_of(const PointSpec& spec) {
  return expert_use(spec.model, spec.experts.layout);
}

LoweringOptions lowering_of(const PointSpec& spec) {
  return {.model = spec.model,
          .mesh = spec.mesh,
          .recipe = recipe_of(spec),
          .pipeline = spec.pipeline,
          .experts = spec.experts.layout};
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
