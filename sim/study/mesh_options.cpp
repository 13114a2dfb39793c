#include "sim/study/mesh_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/model/experts.h"
#include "sim/model/layers.h"
#include "sim/model/sharing_form.h"
#include "sim/program/chunk_map.h"
#include "sim/program/streamed_schedule.h"
#include "sim/study/node_options.h"
#include "sim/study/sharing_choice.h"
#include "sim/study/state_checks.h"
#include "sim/study/training_options.h"

namespace hdpsim {
namespace {

/// Checks whether the keys of a mesh are consistent, and whether they fit the model and the cluster.
class MeshChecks {
 public:
  MeshChecks(const Value& mesh, const Value& training, const KeyReading& reading, PointSpec& point,
             Diagnostics& diagnostics)
      : mesh_(mesh), training_(training), reading_(reading), point_(point), diagnostics_(diagnostics) {}

  // Returns true if the number and kind of the mesh's devices are known.
  bool run() {
    if (reading_.is_right("zero")) check_states(training_, point_, diagnostics_);
    check_optimizer();
    check_whole_parameters();
    check_key_exchange();
    check_cut();
    check_nics();
    if (point_.model.moe) check_rules_of_experts();
    if (!reading_.is_right("nodes") || !reading_.is_right("tp") || !reading_.is_right("pp")) return false;
    check_pipeline();
    if (point_.model.layers > 0) check_split();
    if (point_.cluster.devices == 0 || !reading_.is_right("hdp")) return false;
    fit_mesh();
    return true;
  }

 private:
  void check_optimizer() {
    if (point_.recipe.optimizer != Optimizer::muon || point_.recipe.zero < 2 || !reading_.is_right("zero")) return;
    diagnostics_.unsupported(training_.find("optimizer")->position,
                             "muon needs whole matrices, which 'zero' 2 and 3 cut over the pool",
                             "write zero: 1, or optimizer: adam");
  }

  void check_whole_parameters() {
    if (!point_.recipe.updates_whole() || !point_.recipe.overlap_param_gather) return;
    diagnostics_.unsupported(training_.find("whole_parameters")->position,
                             "broadcasts of whole parameters do not overlap with the first forward yet",
                             "leave 'overlap_param_gather' out");
  }

  void check_cut() {
    if (!reading_.is_right("cp_comm_type")) return;
    const auto problem = cut_problem(point_.cut, point_);
    if (!problem) return;
    const Value* stated = mesh_.find("cp_cut");
    diagnostics_.unsupported(stated == nullptr ? mesh_.position : stated->position, problem->message, problem->help);
  }

  // Where the default does not serve the model, it is the first way that does, unless the study states one.
  void check_key_exchange() {
    const Recipe& recipe = point_.recipe;
    const std::string problem = sharing_form(recipe.key_exchange).problem(point_.model, recipe);
    if (problem.empty()) return;
    const std::optional<KeyExchange> other = first_that_serves(point_.model, recipe);
    if (!other) return;
    const Value* stated = mesh_.find("cp_comm_type");
    if (stated == nullptr) {
      point_.recipe.key_exchange = *other;
    } else if (reading_.is_right("cp_comm_type")) {
      diagnostics_.unsupported(stated->position, problem,
                               fmt::format("write cp_comm_type: {}, or leave it out", word_of(*other)));
    }
  }

  void check_nics() {
    if (point_.ring_nics == NicUse::own || !point_.connections.cold) return;
    diagnostics_.unsupported(mesh_.find("ring_nics")->position,
                             "in a cold step it is not known which devices meet first to pass on parts of messages",
                             "write connections: warm, or ring_nics: own");
  }

  void check_rules_of_experts() {
    if (point_.recipe.suits_experts(point_.mesh.tp)) return;
    check_rules_of_experts(mesh_, mesh_keys());
    check_rules_of_experts(training_, training_keys());
  }

  void check_rules_of_experts(const Value& section, const KeyTable<PointSpec>& keys) {
    for (const KeyText& key : keys.texts()) {
      const Value* stated = section.find(key.name);
      if (key.notes.fixed.empty() || stated == nullptr || stated->text == key.fallback) continue;
      diagnostics_.unsupported(
          stated->position,
          fmt::format("{} has experts, with which '{}' is known as {} only", point_.model.name, key.name, key.fallback),
          fmt::format("write {}: {}", key.name, key.fallback));
    }
  }

  // With one stage there is no schedule, whatever the study states, but its layers can be stated wrongly. An impossible
  // schedule is replaced by the default.
  void check_pipeline() {
    if (point_.mesh.pp == 1) check_only_stage();
    if (point_.mesh.pp == 1 && is_streamed(point_.pipeline)) return;  // one GPU takes all stages in turn
    if (point_.mesh.pp == 1 || !fits_pipeline()) point_.pipeline = {};
  }

  void check_only_stage() {
    const LayerSplit& split = point_.pipeline.split;
    if (!split.layout.empty() && split.layout != std::vector{point_.model.layers}) {
      diagnostics_.error(mesh_.find("layout")->position,
                         fmt::format("the only stage has all {} layers in one chunk", point_.model.layers),
                         "leave 'layout' out, or write a 'pp' above 1");
    }
    for (const auto& [key, layers] :
         {std::pair("first_stage_layers", split.first_stage), std::pair("last_stage_layers", split.last_stage)}) {
      if (layers == 0 || layers == point_.model.layers) continue;
      diagnostics_.error(
          mesh_.find(key)->position,
          fmt::format("'{}' is {}, but the only stage has all {} layers", key, layers, point_.model.layers),
          "leave it out, or write a 'pp' above 1");
    }
  }

  bool fits_pipeline() {
    const PipelineOptions& pipeline = point_.pipeline;
    const ScheduleEntry& schedule = *find_schedule(pipeline.schedule);
    const bool has_virtual_stages = pipeline.virtual_stages > 1;
    const std::int64_t pp = point_.mesh.pp;
    if (pp % schedule.stages_multiple != 0) {
      diagnostics_.error(mesh_.find("pp")->position,
                         fmt::format("'pp' is {}, but the schedule '{}' needs a multiple of {}", pp, schedule.name,
                                     schedule.stages_multiple),
                         "choose another 'pp', or schedule: 1f1b");
      return false;
    }
    if (schedule.takes_virtual_stages != has_virtual_stages) {
      tell_virtual_stages();
      return false;
    }
    const std::int64_t dealt =
        point_.model.layers + (pipeline.split.counts_embedding ? 1 : 0) + (pipeline.split.counts_loss ? 1 : 0);
    if (pipeline.split.layout.empty() && point_.model.layers > 0 && make_schedule(pipeline, pp)->chunks() > dealt) {
      diagnostics_.error(
          mesh_.find("pp")->position,
          fmt::format("'pp' is {}{}, but {} has {} layers", pp,
                      has_virtual_stages ? fmt::format(" with {} virtual stages", pipeline.virtual_stages) : "",
                      point_.model.name, point_.model.layers),
          "every chunk of a stage needs a layer, or an embedding or a loss that counts as one (account_for_embedding, "
          "account_for_loss)");
      return false;
    }
    return pipeline.split.is_even() || fits_split();
  }

  // Whether the layers can be dealt as the study states.
  bool fits_split() {
    const LayerSplit& split = point_.pipeline.split;
    const bool states_stage = split.first_stage > 0 || split.last_stage > 0;
    const Value& stated = *mesh_.find(!split.layout.empty()   ? "layout"
                                      : split.first_stage > 0 ? "first_stage_layers"
                                      : split.last_stage > 0  ? "last_stage_layers"
                                      : split.counts_loss     ? "account_for_loss"
                                                              : "account_for_embedding");
    const ChunkMap chunks(point_.pipeline, point_.mesh.pp);
    if (!split.layout.empty() && (states_stage || split.counts_embedding || split.counts_loss)) {
      diagnostics_.error(stated.position, "the layout says already what each stage has",
                         "leave out first_stage_layers, last_stage_layers, account_for_embedding and account_for_loss");
      return false;
    }
    if ((states_stage || !split.layout.empty()) && !chunks.in_turn()) {
      diagnostics_.error(
          stated.position,
          fmt::format("with the schedule '{}' no stage is the first or the last alone", point_.pipeline.schedule),
          "use account_for_embedding, or another schedule");
      return false;
    }
    if ((split.first_stage > 0 && split.counts_embedding) || (split.last_stage > 0 && split.counts_loss)) {
      diagnostics_.error(stated.position,
                         "the layers of this stage are stated, and something else counts as one of them",
                         "state either, as in Megatron-LM");
      return false;
    }
    if (point_.model.layers == 0) return true;
    const std::string problem = chunks.deal().problem(point_.model.layers);
    if (problem.empty()) return true;
    diagnostics_.error(stated.position, fmt::format("the {} layers of {} cannot be dealt to {} stages so: {}",
                                                    point_.model.layers, point_.model.name, point_.mesh.pp, problem));
    return false;
  }

  void tell_virtual_stages() {
    const PipelineOptions& pipeline = point_.pipeline;
    if (pipeline.virtual_stages == 1) {
      diagnostics_.error(mesh_.find("schedule")->position,
                         fmt::format("the schedule '{}' needs 'virtual_stages' of 2 or more", pipeline.schedule),
                         "write virtual_stages: 2, or schedule: 1f1b");
      return;
    }
    const std::int64_t chunks = make_schedule({pipeline.schedule}, point_.mesh.pp)->chunks() / point_.mesh.pp;
    diagnostics_.error(
        mesh_.find("virtual_stages")->position,
        fmt::format("'virtual_stages' is {}, but the schedule '{}' has {} of layers a stage", pipeline.virtual_stages,
                    pipeline.schedule, chunks == 1 ? "one chunk" : fmt::format("{} chunks", chunks)),
        "write schedule: interleaved, or leave 'virtual_stages' out");
  }

  // Tensor parallelism cuts heads and the inner width of the MLP into equal parts.
  void check_split() {
    const std::int64_t tp = point_.mesh.tp;
    const Transformer& model = point_.model;
    for (const auto& [what, count] : cut_parts(model, point_.mesh.ep == 1)) {
      if (count % tp == 0) continue;
      diagnostics_.error(mesh_.find("tp")->position,
                         fmt::format("'tp' is {}, which does not divide the {} {} of {}", tp, count, what, model.name));
      return;
    }
  }

  [[nodiscard]] const Value* given(std::string_view key) const {
    const Value* value = mesh_.find(key);
    return value != nullptr && !value->is_null() ? value : nullptr;
  }

  // The degree that does not divide the GPUs by itself, or else the last that is given: a sweep may have written it.
  [[nodiscard]] Position place_of_misfit(std::int64_t gpus) const {
    Position place = mesh_.position;
    for (const auto& [key, degree] : {std::pair{"tp", point_.mesh.tp}, {"pp", point_.mesh.pp}}) {
      const Value* value = given(key);
      if (value == nullptr) continue;
      place = value->position;
      if (gpus % degree != 0) break;
    }
    return place;
  }

  void fit_mesh() {
    Mesh& mesh = point_.mesh;
    const std::int64_t gpus = candidates();
    const std::int64_t replica = mesh.tp * mesh.pp;
    const bool divides = gpus % replica == 0;
    const Value* hdp = given("hdp");
    if (hdp == nullptr) mesh.hdp = std::max<std::int64_t>(1, gpus / replica);
    if (point_.choice && hdp != nullptr) return choose_nodes_of(point_, hdp->position, diagnostics_);
    if (mesh.devices() == gpus) return choose_all();
    const std::string help = divides ? fmt::format("leave 'hdp' out, or make it {}", gpus / replica)
                                     : "the GPUs must be a multiple of tp x pp";
    diagnostics_.error(
        hdp != nullptr ? hdp->position : place_of_misfit(gpus),
        fmt::format("tp x hdp x pp = {} x {} x {} = {}, but {} {} GPUs", mesh.tp, mesh.hdp, mesh.pp, mesh.devices(),
                    mesh_.find("nodes") == nullptr ? "the cluster has"
                    : point_.choice                ? "the free nodes have"
                                                   : "its nodes have",
                    gpus),
        point_.choice ? "write 'hdp', for a job that does not take all of them" : help);
  }

  // The GPUs of the nodes of the job, or of those of which they are chosen.
  [[nodiscard]] std::int64_t candidates() const {
    if (!point_.choice) return point_.nodes.devices(point_.cluster);
    return std::ssize(point_.choice->free) * point_.cluster.devices_per_node;
  }

  void choose_all() {
    if (point_.choice) choose_nodes_of(point_, mesh_.find("nodes")->position, diagnostics_);
  }

  const Value& mesh_;
  const Value& training_;
  const KeyReading& reading_;
  PointSpec& point_;
  Diagnostics& diagnostics_;
};

bool has_background(const Value& study) {
  const Value* background = study.find("background");
  return background != nullptr && background->is_sequence() && !background->items.empty();
}

}  // namespace

bool written_with_stages(const Value& study) {
  const Value* mesh = study.find("mesh");
  const Value* pp = mesh == nullptr ? nullptr : mesh->find("pp");
  return pp != nullptr && pp->text != "1";
}

bool written_with_experts(const Value& study) {
  const Value* mesh = study.find("mesh");
  return study.find("moe") != nullptr || (mesh != nullptr && mesh->find("ep") != nullptr);
}

bool read_mesh(const Value& study, PointSpec& point, Diagnostics& diagnostics) {
  const Value* stated = study.find("training");
  const Value training = stated == nullptr || stated->is_null() ? Value::map(study.position) : *stated;
  (void)training_keys().read(training, point, diagnostics);
  const Value* mesh = study.find("mesh");
  if (mesh == nullptr || mesh->is_null()) return false;
  const KeyReading reading = mesh_keys().read(*mesh, point, diagnostics);
  if (point.choice) leave_to_background(study, point.cluster, *point.choice);
  return MeshChecks(*mesh, training, reading, point, diagnostics).run();
}

void check_shard_groups(const Value& study, const PointSpec& point, bool mesh_is_known, Diagnostics& diagnostics) {
  const Mesh& mesh = point.mesh;
  if (mesh.shard_ranks == 0) return;
  const Position& where = study.find("mesh")->find("shard_ranks")->position;
  if (mesh_is_known && mesh.hdp % mesh.shard_ranks != 0) {
    diagnostics.error(
        where, fmt::format("'shard_ranks' is {}, which does not divide the {} ranks", mesh.shard_ranks, mesh.hdp));
  }
  if (point.recipe.zero == 0) {
    diagnostics.error(where, "with zero: 0 ranks shard nothing", "write zero: 1, 2 or 3, or leave 'shard_ranks' out");
  }
  const auto unsupported = [&](std::string_view what) {
    diagnostics.unsupported(where, fmt::format("ranks do not shard in groups yet {}", what), "leave 'shard_ranks' out");
  };
  const std::int64_t devices = mesh.shard_ranks * mesh.tp;
  const std::int64_t group = mesh.experts().devices();
  if (point.model.moe && devices % group != 0 && group % devices != 0) {
    diagnostics.error(where,
                      fmt::format("'shard_ranks' is {}, whose {} devices are no whole number of expert groups of {}",
                                  mesh.shard_ranks, devices, group),
                      fmt::format("make it a multiple of {}", group / std::gcd(group, mesh.tp)));
  }
  if (has_background(study)) unsupported("with other jobs that share links");
}

// Devices that cut experts are some of those that cut the other layers.
void check_expert_cuts(const Value& study, const PointSpec& point, bool mesh_is_known, Diagnostics& diagnostics) {
  const Value* mesh_of_study = study.find("mesh");
  const Value* stated = mesh_of_study == nullptr ? nullptr : mesh_of_study->find("etp");
  if (stated == nullptr || stated->is_null() || point.model.layers == 0) return;
  const std::int64_t tp = point.mesh.tp;
  const std::int64_t etp = point.mesh.etp;
  const auto write = [](std::int64_t divisor) { return fmt::format("write etp: {}", divisor); };
  const auto error = [&](const std::string& message, const std::string& help = {}) {
    diagnostics.error(stated->position, fmt::format("'etp' is {}, {}", etp, message), help);
  };
  if (!point.model.moe) return error(fmt::format("but {} has no experts", point.model.name), "remove 'etp'");
  if (!point.mesh.experts().has_groups()) {
    if (etp == tp || !mesh_is_known) return;
    return error(fmt::format("but with ep: 1 each expert is cut over tp, {} devices", tp),
                 "write an 'ep' above 1, or remove 'etp'");
  }
  if (etp == 1) return;
  const std::int64_t columns = point.model.moe->expert_hidden;
  if (columns % etp != 0) {
    error(fmt::format("which does not divide the {} columns of an expert of {}", columns, point.model.name),
          write(std::gcd(columns, etp)));
  }
  if (mesh_is_known && tp % etp != 0) {
    error(fmt::format("which does not divide 'tp', {}", tp), write(std::gcd(tp, etp)));
  }
  if (point.experts.layout.dispatch != ExpertDispatch::per_copy) {
    error("but a dispatcher that sends tokens once to each node does not cut experts yet",
          "write moe: {dispatch: per_copy}, or etp: 1");
  }
}

void check_expert_groups(const Value& study, const PointSpec& point, bool mesh_is_known, Diagnostics& diagnostics) {
  check_expert_cuts(study, point, mesh_is_known, diagnostics);
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
  const ProductFormat products = point.recipe.products;
  if (point.experts.layout.fp8_sent && !in_fp8(products)) {
    diagnostics.error(study.find("moe")->find("fp8_sent")->position,
                      fmt::format("tokens travel in fp8, but experts multiply in {}",
                                  is_narrow(products) ? narrow_format(products).word : "bf16"),
                      "add kernels: {linear: fp8_blocks}, or another format in fp8");
  }
  const std::int64_t devices = mesh.experts().devices();
  const std::int64_t ranks = expert_ranks(mesh.experts(), mesh.tp);
  if (!mesh_is_known) return;
  if (devices % mesh.tp != 0 && mesh.tp % devices != 0) {
    error(mesh.etp == 1
              ? fmt::format("'tp' is {}: one must be a multiple of the other", mesh.tp)
              : fmt::format("and 'etp' {}, a group of {} devices; 'tp' is {}: one must be a multiple of the other",
                            mesh.etp, devices, mesh.tp));
  } else if (ranks > 1 && mesh.hdp % ranks != 0) {
    error(
        fmt::format("which is {} ranks of {} devices, but {} ranks are no multiple of that", ranks, mesh.tp, mesh.hdp));
  } else if (ranks > 1 && point.experts.across == ExpertSpan::inside) {
    error(fmt::format("but a rank has {} devices in a stage: the expert group reaches over {} ranks", mesh.tp, ranks),
          "say what unequal ranks do: moe: {across: waves} or {across: padding}");
  }
  if (has_background(study)) {
    error("but all-to-alls of experts do not share links with other jobs yet", "remove 'background', or write ep: 1");
  }
}

}  // namespace hdpsim
