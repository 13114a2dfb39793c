#include "sim/study/point.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/fingerprint.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/key_table.h"
#include "sim/document/values.h"
#include "sim/model/layers.h"
#include "sim/model/shares.h"
#include "sim/profile/device_spread.h"
#include "sim/program/streamed_schedule.h"
#include "sim/study/background.h"
#include "sim/study/capacity.h"
#include "sim/study/catalog.h"
#include "sim/study/data_options.h"
#include "sim/study/failures.h"
#include "sim/study/kind_of_run.h"
#include "sim/study/mesh_options.h"
#include "sim/study/node_options.h"
#include "sim/study/streamed_checks.h"
#include "sim/study/study_keys.h"
#include "sim/study/training_options.h"

namespace hdpsim {
namespace {

// A table of one key, which is in the outermost map of the study.
const KeyTable<PointSpec>& grains() {
  static const auto made = [] {
    KeyTable<PointSpec> keys("the study");
    keys.word("grain", "grain", {{"fluid", Grain::fluid}, {"exact", Grain::exact}, {"closed_form", Grain::closed_form}},
              at(&PointSpec::grain), "how fine the simulation is; with `closed_form` nobody shares a link",
              {.written = always_written, .mechanism = "contention", .off = "closed_form"});
    return keys;
  }();
  return made;
}

void read_knowledge(const Value& value, PlannerKnowledge& knows, Diagnostics& diagnostics) {
  if (!value.is_sequence()) {
    diagnostics.error(value.position, "what planners know must be a list", "write knows: [speeds, faults]");
  }
  for (const Value& item : value.items) {
    const auto choice = read_choice(item, "thing to know", {"speeds", "faults"}, diagnostics);
    if (choice == 0) knows.speeds = true;
    if (choice == 1) knows.faults = true;
  }
}

const KeyTable<PlannerKnowledge>& planners() {
  static const auto made = [] {
    KeyTable<PlannerKnowledge> keys("the planner");
    keys.add({"knows",
              list_shape(word_shape({"speeds", "faults"})),
              "",
              "what policies know of devices that differ: the cluster's speeds, the faults",
              {.otherwise = "nothing", .see = "devices-that-differ"}},
             read_knowledge);
    return keys;
  }();
  return made;
}

class PointReader {
 public:
  PointReader(const Value& study, Catalog& catalog, Diagnostics& diagnostics)
      : study_(study), catalog_(catalog), diagnostics_(diagnostics) {}

  PointSpec read() {
    MapReader study(study_, "the study", diagnostics_);
    for (const StudySection& section : study_sections()) (void)study.find(section.text.name);  // all are known
    if (const Value* model = study.require("model")) read_model(*model);
    if (const Value* cluster = study.require("cluster")) read_cluster(*cluster);
    const Value* profile = study.find("profile");
    if (profile != nullptr && !profile->is_null()) {
      read_profile(*profile);
    } else if (!point_.cluster.device.empty()) {
      point_.profile = profile_of_device(point_.cluster.device, study_.position, catalog_, diagnostics_);
    }
    if (const Value* overheads = study.find("overheads")) {
      point_.profile = catalog_.profile_with_overheads(*overheads, point_.profile, diagnostics_);
    }
    if (const Value* kernels = study.find("kernels")) {
      point_.profile = catalog_.profile_with_kernels(*kernels, point_.profile, diagnostics_);
    }
    if (point_.profile != nullptr) take_from(*point_.profile);
    if (const Value* data = study.require("data")) take(read_data(*data, catalog_, diagnostics_));
    if (point_.batch.context > 0) bound_choices(point_.model, point_.batch.context);
    const bool mesh_is_known = read_mesh(study_, point_, diagnostics_);
    take_from(point_.recipe);
    point_.experts = read_experts(study_, point_.model, point_.mesh.experts(), diagnostics_);
    check_expert_groups(study_, point_, mesh_is_known, diagnostics_);
    check_shard_groups(study_, point_, mesh_is_known, diagnostics_);
    if (const Value* memory = study.find("memory")) read_memory(*memory, point_.recipe, diagnostics_);
    if (const Value* grain = study.find("grain")) grains().read_key("grain", *grain, point_, diagnostics_);
    read_conditions(study);
    if (point_.profile != nullptr && mesh_is_known) slow_down_to_slowest();
    if (const Value* planner = study.find("planner")) (void)planners().read(*planner, point_.knows, diagnostics_);
    study.finish();
    return std::move(point_);
  }

 private:
  // Every step waits for the slowest device of the run.
  void slow_down_to_slowest() {
    const std::optional<DeviceSpread>& known = point_.profile->spread;
    const double cv = point_.conditions.noise.spread.value_or(known ? known->cv : 0);
    point_.profile = catalog_.profile_slowed(point_.profile, factors_of_slowest(cv, point_.mesh.devices()));
  }

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
    point_.recipe.host.devices = std::max<std::int64_t>(1, point_.cluster.devices_per_node);
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

  // What a profile decides of how its device trains.
  void take_from(const DeviceProfile& profile) {
    point_.model.element_bytes = profile.element_bytes;
    point_.recipe.products = profile.linear;
    point_.recipe.graphs = profile.graphs;
    point_.recipe.layers = profile.layers;
    point_.recipe.fused_norms = profile.fused_norms;
    point_.recipe.flash_attention = !profile.unfused_attention;
    point_.recipe.dkv_bytes_per_element = profile.backward_ring.dkv_bytes_per_element;
    point_.recipe.host_issues = profile.overheads.host_issue.has_value();
  }

  // What the recipe decides of a layer, and the layers of the recipe.
  void take_from(const Recipe& recipe) {
    if (recipe.repeats_keys) repeat_keys(point_.model);
    if (recipe.is_pytorch())
      point_.recipe.dkv_bytes_per_element = fp32_bytes;  // see sim/program/impl/gathered_chunks.h
    if (recipe.layers != LayerKernels::compiled || recipe.recompute == Recompute::per_operation) return;
    for (const LayerModule module : {LayerModule::norm, LayerModule::activation}) point_.recipe.recompute.add(module);
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

void choose_capacity(const Value& study, PointSpec& point, const RoomHelp& help, Diagnostics& diagnostics) {
  const LoweringOptions job = lowering_of(point);
  const DeviceRoom room = room_of(point);
  if (const auto tokens = largest_capacity(job, room, point.batch)) {
    point.capacity = *tokens;
  } else {
    diagnostics.error(study.find("mesh")->find("capacity")->position, no_capacity_text(job, room.memory),
                      help ? help(point) : "");
  }
}

// " x pp 4 (interleaved, 2 virtual stages)"; empty for one stage.
std::string mesh_text(const Mesh& mesh, const PipelineOptions& pipeline) {
  if (mesh.pp == 1) return "";
  const std::int64_t chunks = pipeline.virtual_stages;
  return fmt::format(" x pp {} ({}{})", mesh.pp, pipeline.schedule,
                     chunks == 1 ? "" : fmt::format(", {} virtual stages", chunks));
}

}  // namespace

KeyText grain_key() {
  return grains().texts().front();
}

const std::vector<KeyText>& planner_keys() {
  return planners().texts();
}

std::string BackgroundSpec::what() const {
  if (job == nullptr) return traffic_pattern_names().at(static_cast<std::size_t>(traffic.pattern));
  return fmt::format("{} with {}", job->model.name, line_of(plan));
}

std::string PointSpec::setting() const {
  const std::int64_t own = mesh.devices();
  const std::string gpus =
      own == cluster.devices ? fmt::format("{}", own) : fmt::format("{} of {}", own, cluster.devices);
  std::vector<std::string> beside;
  for (const BackgroundSpec& other : background) {
    beside.push_back(fmt::format("{} ({}, {} GPUs)", other.name, other.what(), other.gpus(cluster)));
  }
  const bool one = connections.communicators == Communicators::one;
  return fmt::format("{} on {} x {}{}, hdp {} x tp {}{}{}{}, capacity {}{}, {} {}{} of {} tokens{}{}", model.name, gpus,
                     cluster.device, choice ? fmt::format(" ({})", choice_text(*this)) : "", mesh.hdp, mesh.tp,
                     mesh_text(mesh, pipeline), experts.text(), one ? "" : " with a communicator for each group",
                     count_text(capacity), capacity_is_chosen ? " (auto)" : "", steps, connections.cold ? "cold " : "",
                     steps == 1 ? "step" : "steps", count_text(batch.tokens_per_step),
                     beside.empty() ? "" : ", beside ", joined(beside, ", "));
}

LoweringOptions lowering_of(const PointSpec& spec) {
  return {.model = spec.model,
          .mesh = spec.mesh,
          .recipe = spec.recipe,
          .pipeline = spec.pipeline,
          .experts = spec.experts.layout};
}

JobLayout layout_of(const PointSpec& spec) {
  return {.mesh = spec.mesh,
          .placement = spec.placement,
          .nodes = spec.nodes,
          .connections = spec.connections,
          .ring_nics = spec.ring_nics};
}

DeviceRoom room_of(const PointSpec& spec) {
  const auto& costs = spec.profile->connections;
  return {.memory = spec.cluster.least_device_memory(),
          .per_connection = costs ? costs->memory_per_peer : std::nullopt,
          .communicators = spec.connections.communicators};
}

FlopRate mean_peak(FlopRate peak, const ClusterSpec& cluster, const NodeList& nodes) {
  if (cluster.speed.empty() && cluster.kinds.empty()) return peak;
  const std::int64_t devices = nodes.devices(cluster);
  double sum = 0;
  for (std::int64_t place = 0; place < devices; ++place) {
    const DeviceId device = nodes.device(static_cast<std::size_t>(place), cluster.devices_per_node);
    sum += std::max(1.0, cluster.speed_of(device));
  }
  return FlopRate(peak.per_second() * (sum / static_cast<double>(devices)));
}

std::optional<PointSpec> read_point(const Value& study, Catalog& catalog, Diagnostics& diagnostics,
                                    const RoomHelp& help) {
  Diagnostics found;
  PointSpec point = PointReader(study, catalog, found).read();
  point.background = read_background(study, point, catalog, found);
  if (is_streamed(point.pipeline)) check_streamed(study, point, found);
  if (found.empty() && point.capacity_is_chosen) choose_capacity(study, point, help, found);
  diagnostics.append(found);
  if (!found.empty()) return std::nullopt;
  point.kind = kind_of_run(study, point, catalog.stack_of(study.find("framework")));
  const bool has_published_runs = point.kind.device != "CPU";
  if (has_published_runs) point.errors = run_errors(*catalog.published_errors(diagnostics), point.kind);
  point.fingerprint = catalog.fingerprint(*study.find("data")->find("lengths"), point.profile);
  const std::string model = fmt::format(" {}{}", point.model.name, shape_text(point.model));
  point.fingerprint = fingerprint(model, point.fingerprint);
  point.fingerprint = fingerprint(joined(point.experts.layout.shares, " "), point.fingerprint);
  if (const auto& compression = point.experts.layout.compression) {
    point.fingerprint = fingerprint(fmt::format("{}", compression->rate), point.fingerprint);
  }
  for (const BackgroundSpec& other : point.background) {
    if (other.job == nullptr) continue;
    point.fingerprint = fingerprint(fmt::format("{:016x}", other.job->fingerprint), point.fingerprint);
  }
  return point;
}

}  // namespace hdpsim
