#include "sim/study/point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "sim/base/quantity_text.h"
#include "sim/document/reader.h"
#include "sim/profile/profile_file.h"
#include "sim/report/values.h"
#include "sim/study/background.h"
#include "sim/study/capacity.h"
#include "sim/study/failures.h"
#include "sim/study/fingerprint.h"
#include "sim/study/kernel_choice.h"
#include "sim/study/lengths.h"

namespace hdpsim {
namespace {

constexpr double most_tokens = 1e12;
constexpr double most_devices = 1e8;

void set_default(Value& map, std::string_view key, const char* text) {
  const Value* found = map.find(key);
  if (map.is_map() && (found == nullptr || found->is_null())) map.set(key, Value::scalar(text, map.position));
}

// A map of the study that may be left out.
Value& section(Value& study, std::string_view key) {
  Value* found = study.find(key);
  if (found == nullptr) found = &study.set(key, Value::map(study.position));
  if (found->is_null()) *found = Value::map(found->position);
  return *found;
}

// Of a study that speaks of experts.
void set_expert_defaults(Value& study) {
  const Value* mesh = study.find("mesh");
  if (study.find("moe") == nullptr && (mesh == nullptr || mesh->find("ep") == nullptr)) return;
  set_default(section(study, "mesh"), "ep", "1");
  Value& moe = section(study, "moe");
  set_default(moe, "across", "inside");
  set_default(moe, "capacity_factor", "none");
  set_default(moe, "routing", "uniform");
}

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
      point_.profile = with_kernels(point_.profile, *kernels, diagnostics_);
    }
    if (point_.profile != nullptr) point_.model.element_bytes = point_.profile->element_bytes;
    if (const Value* data = study.require("data")) read_data(*data);
    if (const Value* mesh = study.find("mesh")) read_mesh(*mesh);
    (void)study.find("moe");
    point_.experts = read_experts(study_, point_.model, point_.mesh.ep, diagnostics_);
    if (const Value* mesh = study.value().find("mesh"); mesh != nullptr && mesh->find("ep") != nullptr) {
      check_expert_groups(*mesh->find("ep"));
    }
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
    batch.tokens_per_step = data.required_in<std::int64_t>("tokens_per_step", {1, most_tokens}).value_or(0);
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

  void read_mesh(const Value& value) {
    MapReader mesh(value, "the mesh", diagnostics_);
    const Range degree{1, most_devices};
    const auto tp = mesh.required_in<std::int64_t>("tp", degree);
    const auto pp = mesh.required_in<std::int64_t>("pp", degree);
    const auto hdp = mesh.optional_in<std::int64_t>("hdp", degree);
    point_.mesh.ep = mesh.optional_in<std::int64_t>("ep", degree).value_or(1);
    const Value* nodes = mesh.find("nodes");
    read_capacity(mesh);
    read_framework(mesh);
    if (point_.model.moe) check_rules_of_experts(value);
    if (const Value* placement = mesh.find("placement")) {
      if (read_choice(*placement, "placement", placement_names(), diagnostics_)) point_.placement = placement->text;
    }
    read_connections(mesh);
    const PipelineOptions pipeline = read_pipeline(mesh);
    if (const Value* recompute = mesh.find("recompute")) {
      const std::vector<std::string> names(recompute_names.begin(), recompute_names.end());
      const auto choice = read_choice(*recompute, "way to recompute activations", names, diagnostics_);
      if (choice) point_.recompute = static_cast<Recompute>(*choice);
    }
    mesh.finish();
    if (nodes != nullptr && !take_nodes(*nodes)) return;
    if (!tp || !pp) return;
    if (*pp > 1) check_pipeline(value, *pp, pipeline);
    if (point_.model.heads > 0) check_split(*value.find("tp"), *tp);
    const bool hdp_is_wrong = mesh.find("hdp") != nullptr && !hdp;
    if (point_.cluster.devices > 0 && !hdp_is_wrong) fit_mesh(value, *tp, *pp, hdp);
  }

  // How the training framework shards, sums and overlaps.
  void read_framework(MapReader& mesh) {
    point_.memory.zero = mesh.optional_in<std::int64_t>("zero", {0, 3}).value_or(1);
    point_.memory.activations.sequence_parallel = mesh.optional<bool>("sequence_parallel", true);
    if (const Value* gradients = mesh.find("gradients")) {
      const bool halves = read_choice(*gradients, "type of gradients", {"fp32", "bf16"}, diagnostics_) == 1;
      point_.memory.gradient_bytes = halves ? 2 : 4;
    }
    point_.sharding = {.zero = point_.memory.zero,
                       .gradient_bytes = point_.memory.gradient_bytes,
                       .overlap_grad_reduce = mesh.optional<bool>("overlap_grad_reduce", false),
                       .overlap_param_gather = mesh.optional<bool>("overlap_param_gather", false)};
    read_parameters(mesh);
    point_.overlap_tp = mesh.optional<bool>("tp_comm_overlap", false);
  }

  void read_parameters(MapReader& mesh) {
    const Value* parameters = mesh.find("parameters");
    if (parameters == nullptr) return;
    point_.sharding.fp32_parameters =
        read_choice(*parameters, "type of parameters", {"bf16", "fp32"}, diagnostics_) == 1;
    if (!point_.sharding.fp32_parameters || point_.sharding.zero == 3) return;
    diagnostics_.error(parameters->position,
                       "parameters in fp32 are what FSDP gathers, and with this 'zero' nobody does",
                       "write zero: 3, or leave 'parameters' out");
  }

  void check_rules_of_experts(const Value& mesh) {
    const bool fp8 = point_.profile != nullptr && point_.profile->fp8_linear;
    const bool plain = point_.memory.activations.sequence_parallel && point_.sharding == PoolSharding{} && !fp8;
    if (plain) return;
    diagnostics_.unsupported(mesh.position,
                             fmt::format("{} has experts, which are known in bf16, with sequence parallelism and fp32 "
                                         "gradients that ZeRO-1 reduces once a step",
                                         point_.model.name),
                             "leave these keys of 'mesh', and 'kernels.linear', as they are by default");
  }

  void read_capacity(MapReader& mesh) {
    const Value* capacity = mesh.value().find("capacity");
    point_.capacity_is_chosen = capacity != nullptr && capacity->text == "auto";
    if (point_.capacity_is_chosen) {
      (void)mesh.find("capacity");
    } else {
      point_.capacity = mesh.required_in<std::int64_t>("capacity", {1, most_tokens}).value_or(0);
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
    if (reserve != nullptr && reserve->text != "auto") rules.reserve = hdpsim::read<Bytes>(*reserve, diagnostics_);
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

  void read_connections(MapReader& mesh) {
    if (const Value* groups = mesh.find("groups")) {
      const auto choice =
          read_choice(*groups, "way to make groups", {"one_communicator", "communicators"}, diagnostics_);
      point_.connections.communicators = choice == 1 ? Communicators::per_group : Communicators::one;
    }
    if (const Value* connections = mesh.find("connections")) {
      point_.connections.cold = read_choice(*connections, "state of connections", {"warm", "cold"}, diagnostics_) == 1;
    }
  }

  PipelineOptions read_pipeline(MapReader& mesh) {
    PipelineOptions pipeline;
    if (const Value* schedule = mesh.find("schedule")) {
      const Value* name = schedule;
      if (schedule->is_map()) {
        MapReader map(*schedule, "the schedule", diagnostics_);
        name = map.require("name");
        map.finish();
      }
      const auto choice =
          name == nullptr ? std::nullopt : read_choice(*name, "schedule", pipeline_schedule_names(), diagnostics_);
      pipeline.schedule = static_cast<PipelineSchedule>(choice.value_or(0));
    }
    pipeline.virtual_stages = mesh.optional_in<std::int64_t>("virtual_stages", {1, most_devices}).value_or(1);
    return pipeline;
  }

  // With one stage nothing is scheduled, whatever the study says of it.
  void check_pipeline(const Value& mesh, std::int64_t pp, const PipelineOptions& pipeline) {
    const bool interleaves = pipeline.schedule == PipelineSchedule::interleaved;
    const std::string& name = pipeline_schedule_names().at(static_cast<std::size_t>(pipeline.schedule));
    const Value* virtual_stages = mesh.find("virtual_stages");
    const std::int64_t chunks = pp * pipeline.virtual_stages;
    if (interleaves && pipeline.virtual_stages == 1) {
      diagnostics_.error(mesh.find("schedule")->position,
                         "the schedule 'interleaved' needs 'virtual_stages' of 2 or more",
                         "write virtual_stages: 2, or schedule: 1f1b");
    } else if (!interleaves && pipeline.virtual_stages > 1) {
      diagnostics_.error(virtual_stages->position,
                         fmt::format("'virtual_stages' is {}, but the schedule '{}' has one chunk of layers a stage",
                                     pipeline.virtual_stages, name),
                         "write schedule: interleaved, or leave 'virtual_stages' out");
    } else if (point_.model.layers > 0 && chunks > point_.model.layers) {
      diagnostics_.error(mesh.find("pp")->position,
                         fmt::format("'pp' is {}{}, but {} has {} layers", pp,
                                     interleaves ? fmt::format(" with {} virtual stages", pipeline.virtual_stages) : "",
                                     point_.model.name, point_.model.layers),
                         "every chunk of a stage needs a layer");
    }
    point_.pipeline = pipeline;
  }

  // False if nothing can be said of the mesh.
  bool take_nodes(const Value& value) {
    if (point_.cluster.devices == 0) return false;
    auto nodes = read_nodes(value, point_.cluster, diagnostics_);
    if (nodes) point_.nodes = std::move(*nodes);
    return nodes.has_value();
  }

  // Tensor parallelism cuts heads and the inner width of the MLP in equal parts.
  void check_split(const Value& where, std::int64_t tp) {
    const Transformer& model = point_.model;
    std::vector<std::pair<std::string_view, std::int64_t>> parts = {{"heads", model.heads},
                                                                    {"key-value heads", model.kv_heads}};
    if (expert_layers(model, 0, model.layers) < model.layers)
      parts.emplace_back("columns of its MLP", model.ffn_hidden);
    if (model.moe && point_.mesh.ep == 1) parts.emplace_back("columns of its experts", model.moe->expert_hidden);
    if (model.moe) parts.emplace_back("columns of its shared experts", model.moe->shared_hidden);
    for (const auto& [what, count] : parts) {
      if (count % tp == 0) continue;
      diagnostics_.error(where.position,
                         fmt::format("'tp' is {}, which does not divide the {} {} of {}", tp, count, what, model.name));
      return;
    }
  }

  // Every device of a group has equally many experts, and groups fill ranks or the other way round.
  void check_expert_groups(const Value& where) {
    const Mesh& mesh = point_.mesh;
    const Transformer& model = point_.model;
    if (mesh.ep == 1 || model.layers == 0) return;
    const auto error = [&](const std::string& message, const std::string& help = {}) {
      diagnostics_.error(where.position, fmt::format("'ep' is {}, {}", mesh.ep, message), help);
    };
    if (!model.moe) return error(fmt::format("but {} has no experts", model.name), "remove 'ep'");
    if (model.moe->experts % mesh.ep != 0) {
      error(fmt::format("which does not divide the {} experts of {}", model.moe->experts, model.name));
    }
    const bool reaches_over_ranks = mesh.ep > mesh.tp;
    if (!mesh_is_known_) return;
    if (mesh.ep % mesh.tp != 0 && mesh.tp % mesh.ep != 0) {
      error(fmt::format("'tp' is {}: one must be a multiple of the other", mesh.tp));
    } else if (reaches_over_ranks && mesh.hdp % (mesh.ep / mesh.tp) != 0) {
      error(fmt::format("which is {} ranks of {} devices, but {} ranks are no multiple of that", mesh.ep / mesh.tp,
                        mesh.tp, mesh.hdp));
    } else if (reaches_over_ranks && point_.experts.across == ExpertSpan::inside) {
      error(fmt::format("but a rank has {} devices in a stage: the expert group reaches over {} ranks", mesh.tp,
                        mesh.ep / mesh.tp),
            "say what unequal ranks do: moe: {across: waves} or {across: padding}");
    }
    if (const Value* background = study_.find("background");
        background != nullptr && background->is_sequence() && !background->items.empty()) {
      error("but all-to-alls of experts do not share links with other jobs yet", "remove 'background', or write ep: 1");
    }
  }

  void fit_mesh(const Value& where, std::int64_t tp, std::int64_t pp, std::optional<std::int64_t> hdp) {
    const std::int64_t gpus = point_.nodes.devices(point_.cluster);
    const std::int64_t replica = tp * pp;
    const bool divides = gpus % replica == 0;
    mesh_is_known_ = true;
    point_.mesh = {hdp.value_or(std::max<std::int64_t>(1, gpus / replica)), tp, pp, point_.mesh.ep};
    if (point_.mesh.devices() == gpus) return;
    const std::string help = divides ? fmt::format("leave 'hdp' out, or make it {}", gpus / replica)
                                     : "the GPUs must be a multiple of tp x pp";
    const Position& position = hdp ? where.find("hdp")->position : where.position;
    diagnostics_.error(
        position,
        fmt::format("tp x hdp x pp = {} x {} x {} = {}, but {} {} GPUs", tp, point_.mesh.hdp, pp, point_.mesh.devices(),
                    where.find("nodes") == nullptr ? "the cluster has" : "its nodes have", gpus),
        help);
  }

  const Value& study_;
  Catalog& catalog_;
  Diagnostics& diagnostics_;
  PointSpec point_;
  bool mesh_is_known_ = false;  // how many devices of which kind, right or wrong
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

// " x pp 4 (interleaved, 2 virtual stages)"; nothing for one stage.
std::string text_of(const Mesh& mesh, const PipelineOptions& pipeline) {
  if (mesh.pp == 1) return "";
  const std::string& name = pipeline_schedule_names().at(static_cast<std::size_t>(pipeline.schedule));
  const std::int64_t chunks = pipeline.virtual_stages;
  return fmt::format(" x pp {} ({}{})", mesh.pp, name, chunks == 1 ? "" : fmt::format(", {} virtual stages", chunks));
}

void choose_capacity(const Value& study, PointSpec& point, Diagnostics& diagnostics) {
  if (const auto tokens = largest_capacity(point)) {
    point.capacity = *tokens;
    return;
  }
  const DeviceShape shape{.tp = point.mesh.tp, .pp = point.mesh.pp, .pool = point.mesh.hdp};
  const DeviceMemory device(point.model, stage_shape(point.model, shape, 0), memory_rules_of(point));
  diagnostics.error(study.find("mesh")->find("capacity")->position,
                    fmt::format("no capacity fits: of the {} of a device, {} are full before the first token",
                                bytes_text(point.cluster.least_device_memory()), bytes_text(device.states().total())),
                    "use a larger 'tp' or a higher level of 'zero'");
}

}  // namespace

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
  return fmt::format("{} on {} x {}, hdp {} x tp {}{}{}{}, capacity {}{}, {} {}{} of {} tokens{}{}", model.name, gpus,
                     cluster.device, mesh.hdp, mesh.tp, text_of(mesh, pipeline), experts.text(),
                     one ? "" : " with a communicator for each group", count_text(capacity),
                     capacity_is_chosen ? " (auto)" : "", steps, connections.cold ? "cold " : "",
                     steps == 1 ? "step" : "steps", count_text(batch.tokens_per_step),
                     beside.empty() ? "" : ", beside ", fmt::join(beside, ", "));
}

Value with_defaults(Value study) {
  if (!study.is_map()) return study;
  set_expert_defaults(study);
  set_default(study, "grain", "fluid");
  if (study.find("data") != nullptr) {
    Value& data = section(study, "data");
    set_default(data, "overlong", "split");
    set_default(data, "seed", "1");
  }
  Value& mesh = section(study, "mesh");
  set_default(mesh, "tp", "1");
  set_default(mesh, "pp", "1");
  set_default(mesh, "capacity", "8Ki");
  set_default(mesh, "placement", "contiguous");
  set_default(mesh, "groups", "one_communicator");
  set_default(mesh, "connections", "warm");
  const Value* pp = mesh.find("pp");
  if (pp != nullptr && pp->text != "1") {
    set_default(mesh, "schedule", "1f1b");
    set_default(mesh, "virtual_stages", "1");
  }
  set_default(mesh, "recompute", "none");
  set_default(mesh, "zero", "1");
  Value& memory = section(study, "memory");
  set_default(memory, "loss", "fused");
  set_default(memory, "fragmentation", "0.047");
  set_default(memory, "reserve", "auto");
  return study;
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
                    .autocast = spec.sharding.fp32_parameters},
          .sharding = spec.sharding,
          .overlap_tp = spec.overlap_tp,
          .host_issues = spec.profile->overheads.host_issue.has_value()};
}

MemoryRules memory_rules_of(const PointSpec& spec) {
  MemoryRules rules = spec.memory;
  rules.activations.recompute = spec.recompute;
  rules.activations = with_experts(rules.activations, spec.model, spec.experts.layout);
  return rules;
}

std::optional<PointSpec> read_point(const Value& study, Catalog& catalog, Diagnostics& diagnostics) {
  Diagnostics found;
  PointSpec point = PointReader(study, catalog, found).read();
  point.background = read_background(study, point, catalog, found);
  if (found.empty() && point.capacity_is_chosen) choose_capacity(study, point, found);
  diagnostics.append(found);
  if (!found.empty()) return std::nullopt;
  point.fingerprint = fingerprint_of_lengths(*study.find("data")->find("lengths"), catalog.traces());
  point.fingerprint = fingerprint(profile_text(*point.profile), point.fingerprint);
  point.fingerprint = fingerprint(text_of(point.model), point.fingerprint);
  point.fingerprint = fingerprint(fmt::format("{}", fmt::join(point.experts.layout.shares, " ")), point.fingerprint);
  for (const BackgroundSpec& other : point.background) {
    if (other.job == nullptr) continue;
    point.fingerprint = fingerprint(fmt::format("{:016x}", other.job->fingerprint), point.fingerprint);
  }
  return point;
}

}  // namespace hdpsim
