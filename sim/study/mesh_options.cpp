#include "sim/study/mesh_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/document/reader.h"
#include "sim/model/experts.h"

namespace hdpsim {
namespace {

constexpr double most_tokens = limits::most_tokens_of_sequence;
// Products of three degrees fit 64 bits.
constexpr Range ranks_range{1, 16 * 1024 * 1024};
constexpr Range degree_range{1, 65536};

class MeshReader {
 public:
  MeshReader(PointSpec& point, Diagnostics& diagnostics) : point_(point), diagnostics_(diagnostics) {}

  bool read(const Value& value) {
    MapReader mesh(value, "the mesh", diagnostics_);
    const auto tp = mesh.required_in<std::int64_t>("tp", degree_range);
    const auto pp = mesh.required_in<std::int64_t>("pp", degree_range);
    const auto hdp = mesh.optional_in<std::int64_t>("hdp", ranks_range);
    point_.mesh.ep = mesh.optional_in<std::int64_t>("ep", ranks_range).value_or(1);
    const Value* nodes = mesh.find("nodes");
    read_capacity(mesh);
    read_framework(mesh);
    if (point_.model.moe) check_rules_of_experts(value);
    if (const Value* placement = mesh.find("placement")) {
      if (read_choice(*placement, "placement", placement_names(), diagnostics_)) point_.placement = placement->text;
    }
    read_connections(mesh);
    const PipelineOptions pipeline = read_pipeline(mesh);
    if (const Value* recompute = mesh.find("recompute")) point_.recompute = read_recompute(*recompute);
    mesh.finish();
    if ((nodes != nullptr && !take_nodes(*nodes)) || !tp || !pp) return false;
    if (*pp > 1) check_pipeline(value, *pp, pipeline);
    if (point_.model.heads > 0) check_split(*value.find("tp"), *tp);
    const bool hdp_is_wrong = mesh.find("hdp") != nullptr && !hdp;
    if (point_.cluster.devices == 0 || hdp_is_wrong) return false;
    fit_mesh(value, *tp, *pp, hdp);
    return true;
  }

 private:
  // The name of a set, or a list of modules.
  Recompute read_recompute(const Value& value) {
    if (!value.is_sequence()) {
      const std::vector<std::string> names(recompute_names.begin(), recompute_names.end());
      const auto choice = read_choice(value, "way to recompute activations", names, diagnostics_);
      return choice ? named_recomputes.at(*choice) : Recompute::none;
    }
    const std::vector<std::string> names(layer_module_names.begin(), layer_module_names.end());
    Recompute recompute;
    for (const Value& item : value.items) {
      const auto choice = read_choice(item, "module to recompute", names, diagnostics_);
      if (!choice) continue;
      const auto module = static_cast<LayerModule>(*choice);
      check_module(item, module);
      recompute.add(module);
    }
    return recompute;
  }

  void check_module(const Value& item, LayerModule module) {
    if (point_.model.layers == 0) return;  // unknown, which is told elsewhere
    const std::int64_t with_experts = expert_layers(point_.model, 0, point_.model.layers);
    if (module == LayerModule::experts && with_experts == 0) {
      diagnostics_.error(item.position, fmt::format("no layer of {} has experts", point_.model.name), "write mlp");
    }
    if (module == LayerModule::mlp && with_experts == point_.model.layers) {
      diagnostics_.error(item.position, fmt::format("every layer of {} has experts, not an MLP", point_.model.name),
                         "write experts");
    }
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
    point_.accumulation_fusion = mesh.optional<bool>("gradient_accumulation_fusion", true);
    point_.overlap_tp = mesh.optional<bool>("tp_comm_overlap", false);
    point_.overlap_tp_gradients = mesh.optional<bool>("tp_gradient_overlap", false);
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
    const bool plain = point_.memory.activations.sequence_parallel && point_.sharding == PoolSharding{} &&
                       point_.accumulation_fusion && !fp8;
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
    pipeline.virtual_stages = mesh.optional_in<std::int64_t>("virtual_stages", degree_range).value_or(1);
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
    if (expert_layers(model, 0, model.layers) < model.layers) {
      parts.emplace_back("columns of its MLP", model.ffn_hidden);
    }
    if (model.moe && point_.mesh.ep == 1) parts.emplace_back("columns of its experts", model.moe->expert_hidden);
    if (model.moe) parts.emplace_back("columns of its shared experts", model.moe->shared_hidden);
    for (const auto& [what, count] : parts) {
      if (count % tp == 0) continue;
      diagnostics_.error(where.position,
                         fmt::format("'tp' is {}, which does not divide the {} {} of {}", tp, count, what, model.name));
      return;
    }
  }

  void fit_mesh(const Value& where, std::int64_t tp, std::int64_t pp, std::optional<std::int64_t> hdp) {
    const std::int64_t gpus = point_.nodes.devices(point_.cluster);
    const std::int64_t replica = tp * pp;
    const bool divides = gpus % replica == 0;
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

  PointSpec& point_;
  Diagnostics& diagnostics_;
};

}  // namespace

bool read_mesh(const Value& mesh, PointSpec& point, Diagnostics& diagnostics) {
  return MeshReader(point, diagnostics).read(mesh);
}

void check_expert_groups(const Value& study, const PointSpec& point, bool mesh_is_known, Diagnostics& diagnostics) {
  const Mesh& mesh = point.mesh;
  const Transformer& model = point.model;
  if (mesh.ep == 1 || model.layers == 0) return;
  const Position& where = study.find("mesh")->find("ep")->position;
  const auto error = [&](const std::string& message, const std::string& help = {}) {
    diagnostics.error(where, fmt::format("'ep' is {}, {}", mesh.ep, message), help);
  };
  if (!model.moe) return error(fmt::format("but {} has no experts", model.name), "remove 'ep'");
  if (model.moe->experts % mesh.ep != 0) {
    error(fmt::format("which does not divide the {} experts of {}", model.moe->experts, model.name));
  }
  const bool reaches_over_ranks = mesh.ep > mesh.tp;
  if (!mesh_is_known) return;
  if (mesh.ep % mesh.tp != 0 && mesh.tp % mesh.ep != 0) {
    error(fmt::format("'tp' is {}: one must be a multiple of the other", mesh.tp));
  } else if (reaches_over_ranks && mesh.hdp % (mesh.ep / mesh.tp) != 0) {
    error(fmt::format("which is {} ranks of {} devices, but {} ranks are no multiple of that", mesh.ep / mesh.tp,
                      mesh.tp, mesh.hdp));
  } else if (reaches_over_ranks && point.experts.across == ExpertSpan::inside) {
    error(fmt::format("but a rank has {} devices in a stage: the expert group reaches over {} ranks", mesh.tp,
                      mesh.ep / mesh.tp),
          "say what unequal ranks do: moe: {across: waves} or {across: padding}");
  }
  if (const Value* background = study.find("background");
      background != nullptr && background->is_sequence() && !background->items.empty()) {
    error("but all-to-alls of experts do not share links with other jobs yet", "remove 'background', or write ep: 1");
  }
}

}  // namespace hdpsim
