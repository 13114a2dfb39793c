#include "sim/program/program.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "sim/base/check.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/model/parameters.h"
#include "sim/model/shares.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/group_cut.h"
#include "sim/program/expert_layer.h"
#include "sim/program/impl/activation_copies.h"
#include "sim/program/impl/lowering.h"
#include "sim/program/ring_launches.h"

namespace hdpsim {
namespace {

// `first`, `last`: the pass's micro-batch is the first or the last one of any of its ranks. The collectives of a
// pipeline that are not needed layer by layer are not part of a pass, so that they do not delay its messages.
PassWork work_of(const Pipeline& pipeline, PassId id, const std::vector<LayerRun>& layers, bool first, bool last,
                 const LoweringOptions& options) {
  const StagePass pass = pipeline.pass(id);
  const Recipe& recipe = options.recipe;
  const bool pool = options.mesh.hdp > 1 || recipe.copies_in_pass();
  const bool staged = options.mesh.pp > 1;
  const bool gathers_once = !staged && keeps_activations(pass.kind);  // parameters that are then there for the step
  return {layers,
          pass.chunk == 0,
          pass.chunk + 1 == pipeline.chunks(),
          pipeline.begins_on_stage(id),
          pass.kind,
          pool && (gathers_once ? recipe.gathers_by_layer(first) : recipe.gathers_in_pass()),
          pool && (staged ? recipe.reduces_in_pass() : recipe.reduces_by_layer(last)),
          pipeline.micro_batch(id).repeats_forward};
}

std::int64_t table_parameters(const Transformer& model, std::int64_t tp) {
  return divided(model.vocabulary * model.hidden, tp);
}

std::vector<LayerRun> layers_of_stage(const Transformer& model, const ChunkMap& chunks, std::int64_t stage) {
  std::vector<LayerRun> layers;
  for (const std::int64_t chunk : chunks.held(stage)) {
    for (const LayerRun& run : chunks.runs(model, chunk)) layers.push_back(run);
  }
  return layers;
}

DeviceParameters stage_parameters(const Transformer& model, const Mesh& mesh, const ChunkMap& chunks,
                                  std::int64_t stage) {
  const std::int64_t around = parameters_around_layers(model, chunks.has_embedding(stage), chunks.has_head(stage));
  return device_parameters(model, layers_of_stage(model, chunks, stage), around, mesh.tp, mesh.experts());
}

PoolBytes gathered_bytes(const Recipe& recipe, const DeviceParameters& held, const DeviceParameters& trained,
                         std::int64_t element_bytes) {
  PoolBytes gathered = pool_bytes(trained, recipe.gathered_type(), element_bytes);
  if (recipe.lora.is_on() && recipe.gathers_in_pass()) gathered += pool_bytes(held, recipe.lora.base, element_bytes);
  return gathered;
}

ModelParts parts_of(const LoweringOptions& job) {
  const auto& [model, mesh, recipe, pipeline, experts] = job;
  std::vector<LayerKind> kinds;
  for (Transformer& alone : of_each_kind(model)) {
    const std::vector<LayerRun> layer = {{1, kinds.size()}};
    const DeviceParameters held = device_parameters(model, layer, 0, mesh.tp, mesh.experts());
    const DeviceParameters trained = trained_parameters(model, layer, recipe, held, mesh.tp);
    LayerOperations operations = layer_operations(alone, recipe);
    std::vector<KeptTensor> kept = kept_tensors(alone, recipe, expert_use(model, experts));
    const PoolBytes gathered = gathered_bytes(recipe, held, trained, model.element_bytes);
    kinds.push_back({std::move(alone), trained, gathered, std::move(operations), std::move(kept)});
  }
  return {std::move(kinds), end_operations(model, recipe)};
}

KeyExchange exchange_of_group(const MicroBatch& micro_batch, const LoweringOptions& options) {
  return own_exchange(micro_batch).value_or(options.recipe.key_exchange);
}

}  // namespace

GroupSharing sharing_of(const MicroBatch& micro_batch, const LoweringOptions& options) {
  return group_sharing(exchange_of_group(micro_batch, options), common_kv_heads(options.model, options.mesh.tp),
                       options.recipe, std::ssize(micro_batch.group));
}

std::int64_t layers_of_pass(const LoweringOptions& job) {
  return ChunkMap(job.pipeline, job.mesh.pp).deal().typical(job.model.layers);
}

std::int64_t parameters_of_stage(const Transformer& model, const Mesh& mesh, const ChunkMap& chunks,
                                 std::int64_t stage) {
  return stage_parameters(model, mesh, chunks, stage).all();
}

LoweringContext::LoweringContext(LoweringOptions job) : options(std::move(job)), parts(parts_of(options)) {
  const auto every = [this](const auto& holds) {
    return std::all_of(parts.kinds.begin(), parts.kinds.end(),
                       [&](const LayerKind& kind) { return holds(kind.model); });
  };
  // Experts depend on the other ranks, an indexer and linear mixing have launches and states of their own by span, and
  // a window decides on what a ring exchanges.
  spans_only_attend_alone =
      every([](const Transformer& layer) { return !layer.moe && !layer.indexer && !layer.linear; });
  spans_only_attend = spans_only_attend_alone && every([](const Transformer& layer) { return most_keys(layer) == 0; });
}

std::size_t PassClassHash::operator()(const PassClass& of) const {
  std::uint64_t hash = 0;
  const auto add = [&](std::uint64_t word) {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15U;
    hash = (std::rotl(hash, 23) ^ word) * odd;
  };
  add(static_cast<std::uint64_t>(of.pass.chunk) << 8U | static_cast<std::uint64_t>(of.pass.kind));
  add(static_cast<std::uint64_t>(of.ranks) << 32U ^ static_cast<std::uint64_t>(of.tokens));
  add(of.exchange ? static_cast<std::uint64_t>(*of.exchange) + 1 : 0);
  add((of.first ? 1U : 0U) | (of.last ? 2U : 0U) | (of.begins_on_stage ? 4U : 0U) | (of.offloads ? 8U : 0U));
  return hash ^ hash >> 32U;
}

Program::Program(const Plan& plan, LoweringOptions options)
    : Program(plan, std::make_shared<const LoweringContext>(std::move(options))) {}

Program::Program(const Plan& plan, std::shared_ptr<const LoweringContext> context)
    : plan_(plan),
      context_(std::move(context)),
      pipeline_(plan, context_->options.mesh.pp, context_->options.pipeline) {
  const LoweringOptions& options = context_->options;
  const Mesh& mesh = options.mesh;
  HDPSIM_CHECK(mesh.hdp == plan.ranks, "a plan for {} ranks on a mesh of {}", plan.ranks, mesh.hdp);
  const LayerDeal& deal = pipeline_.chunk_map().deal();
  HDPSIM_CHECK(deal.problem(options.model.layers).empty(), "{} layers in {} chunks of {} stages: {}",
               options.model.layers, pipeline_.chunks(), pipeline_.stages(), deal.problem(options.model.layers));
  const std::int64_t ranks = expert_ranks(mesh.experts(), mesh.tp);
  HDPSIM_CHECK(options.experts.ep == mesh.ep && options.experts.etp == mesh.etp && ranks == plan.expert_ranks,
               "experts on {} x {} devices, expert groups of {} x {} devices of {} ranks in a plan for {} ranks",
               options.experts.ep, options.experts.etp, mesh.ep, mesh.etp, ranks, plan.expert_ranks);
  HDPSIM_CHECK(!options.model.moe || options.recipe.suits_experts(mesh.tp),
               "experts of {} under rules that are not known for them", options.model.name);
  for (std::int64_t chunk = 0; chunk < pipeline_.chunks(); ++chunk) {
    layers_.push_back(pipeline_.chunk_map().runs(options.model, chunk));
    choice_of_token_.push_back(choice_taken_by(deal.layers(options.model.layers, chunk)));
  }
  if (options.model.moe) expert_tokens_ = expert_tokens(plan, mesh.tp, mesh.experts().devices());
  if (options.recipe.overlap_grad_reduce || options.recipe.overlap_param_gather) mark_first_and_last();
}

Bytes Program::choice_taken_by(const LayerRange& range) const {
  if (range.count == 0) return {};
  const Transformer& layer = context_->parts.kinds[layer_runs(options().model, range.first, 1).front().kind].model;
  const bool takes_choice = layer.indexer && !scores_keys(layer);
  return Bytes(takes_choice ? choice_bytes(*layer.indexer) : 0);
}

void Program::mark_first_and_last() {
  first_.resize(plan_.micro_batches.size());
  last_.resize(plan_.micro_batches.size());
  const auto update = [this](MicroBatchId id) { return plan_.micro_batches[id.index()].update; };
  for (const auto& of_rank : plan_.schedule) {
    for (auto first = of_rank.begin(); first != of_rank.end();) {
      first_[first->index()] = true;
      const auto next =
          std::find_if(first, of_rank.end(), [&](MicroBatchId id) { return update(id) > update(*first); });
      auto last = std::prev(next);  // to run backward
      while (plan_.micro_batches[last->index()].continues) --last;
      last_[last->index()] = true;
      first = next;
    }
  }
}

MicroBatchProgram Program::pass(PassId id) const {
  const std::vector<LayerRun>& layers = layers_of(pipeline_.pass(id));
  const PassWork work = work_of(pipeline_, id, layers, is_first(id), is_last(id), options());
  const std::size_t micro_batch = pipeline_.micro_batch_id(id).index();
  const ExpertTokens group = expert_tokens_.empty() ? ExpertTokens{} : expert_tokens_[micro_batch];
  return lowered(work, pipeline_.micro_batch(id), options(), context_->parts, group);
}

std::optional<PassClass> Program::class_of(PassId id) const {
  const MicroBatch& micro_batch = pipeline_.micro_batch(id);
  const bool is_alone = micro_batch.group.size() == 1;
  if (!(is_alone ? context_->spans_only_attend_alone : context_->spans_only_attend)) return std::nullopt;
  if (!is_alone && !passes_all(exchange_of_group(micro_batch, options()))) return std::nullopt;
  if (micro_batch.continues || micro_batch.token_wise || !micro_batch.local.empty() || is_uneven(micro_batch))
    return std::nullopt;
  const std::int64_t tokens = micro_batch.tokens_per_rank();
  if (tokens == 0) return std::nullopt;
  PassClass of{.pass = pipeline_.pass(id),
               .begins_on_stage = pipeline_.begins_on_stage(id),
               .first = is_first(id),
               .last = is_last(id),
               .repeats_forward = micro_batch.repeats_forward,
               .offloads = micro_batch.offloads(),
               .cut = is_alone ? TokenCut::per_document : micro_batch.cut,
               .exchange = own_exchange(micro_batch),
               .ranks = std::ssize(micro_batch.group),
               .tokens = tokens};
  of.pass.micro_batch = MicroBatchId(0);
  return of;
}

void Program::attend(PassId id, MicroBatchProgram& program) const {
  HDPSIM_CHECK(program.span_launches.size() == program.attention.size(), "{} of {} launches follow from spans",
               program.span_launches.size(), program.attention.size());
  const MicroBatch& micro_batch = pipeline_.micro_batch(id);
  const auto launches_of = [&](const SpanLaunch& launch) {
    const Transformer& layer = context_->parts.kinds[launch.kind].model;
    const std::int64_t tp = options().mesh.tp;
    return launch.part == SpanLaunch::Part::gathered
               ? gathered_attention(micro_batch, layer, tp, Direction::forward)
               : ring_attention(micro_batch, layer, tp, program.sharing, Direction::forward);
  };
  std::optional<SpanLaunch> known;  // both directions, and both parts of a ring, have the same blocks
  RingAttention ring;
  for (std::size_t i = 0; i < program.attention.size(); ++i) {
    const SpanLaunch& launch = program.span_launches[i];
    const bool gathered = launch.part == SpanLaunch::Part::gathered;
    const bool same = known && known->kind == launch.kind && (known->part == SpanLaunch::Part::gathered) == gathered;
    if (!same) ring = launches_of(launch);
    known = launch;
    program.attention[i].blocks = launch.part == SpanLaunch::Part::step ? ring.step.blocks : ring.own.blocks;
  }
  if (micro_batch.offloads()) copy_activations(micro_batch, options(), context_->parts, program);
}

bool Program::are_alike(PassId a, PassId b) const {
  if (a == b) return true;
  if (!are_alike_alone(a, b)) return false;
  const std::optional<PassId> partner_a = pipeline_.overlap_partner(a);
  const std::optional<PassId> partner_b = pipeline_.overlap_partner(b);
  if (!partner_a || !partner_b) return !partner_a && !partner_b;
  return are_alike_alone(*partner_a, *partner_b);
}

// Without what runs beside them.
bool Program::are_alike_alone(PassId a, PassId b) const {
  if (is_first(a) != is_first(b) || is_last(a) != is_last(b)) return false;
  const MicroBatchId of_a = pipeline_.micro_batch_id(a);
  const MicroBatchId of_b = pipeline_.micro_batch_id(b);
  if (!expert_tokens_.empty() && expert_tokens_[of_a.index()] != expert_tokens_[of_b.index()]) return false;
  StagePass other = pipeline_.pass(b);
  other.micro_batch = of_a;
  return other == pipeline_.pass(a) && pipeline_.begins_on_stage(a) == pipeline_.begins_on_stage(b) &&
         have_same_work(pipeline_.micro_batch(a), pipeline_.micro_batch(b));
}

bool Program::is_first(PassId id) const {
  return !first_.empty() && first_[pipeline_.micro_batch_id(id).index()];
}

bool Program::is_last(PassId id) const {
  return !last_.empty() && last_[pipeline_.micro_batch_id(id).index()];
}

PoolWork Program::pool_work(PassId id) const {
  const Recipe& recipe = options().recipe;
  if (first_.empty() || pipeline_.stages() == 1 || !options().mesh.has_data_parallelism()) return {};
  const StagePass pass = pipeline_.pass(id);
  const bool forward = pass.kind == PassKind::forward;
  const bool gathers = forward && !recipe.gathers_in_pass() && recipe.gathers_by_layer(is_first(id));
  const bool sums = pass.kind == PassKind::backward || pass.kind == PassKind::weight_gradient;
  const bool reduces = sums && !recipe.reduces_in_pass() && recipe.reduces_by_layer(is_last(id));
  if (!gathers && !reduces) return {};  // all but the first and the last pass of a chunk
  const Transformer& model = options().model;
  std::int64_t around = pass.chunk == 0 ? input_parameters(model) : 0;
  if (pass.chunk + 1 == pipeline_.chunks()) {
    around += output_parameters(model, pipeline_.chunk_map().has_embedding(pass.stage));
  }
  const std::vector<LayerRun> layers = layers_of(pass);
  const Mesh& mesh = options().mesh;
  const DeviceParameters held = device_parameters(model, layers, around, mesh.tp, mesh.experts());
  const DeviceParameters trained = trained_parameters(model, layers, recipe, held, mesh.tp);
  return {gathers ? pool_bytes(trained, recipe.gathered_type(), model.element_bytes) : PoolBytes{},
          pool_bytes(trained, reduces ? recipe.gradient_bytes : 0)};
}

MicroBatchProgram Program::micro_batch(MicroBatchId id) const {
  HDPSIM_CHECK(pipeline_.has_whole_passes(), "micro-batch {} is several passes, on {} stages", id.index(),
               pipeline_.stages());
  return pass(PassId(id.index()));
}

Bytes Program::message(PassId id) const {
  const std::int64_t tp = options().mesh.tp;
  const std::int64_t tokens = (pipeline_.micro_batch(id).tokens_per_rank() + tp - 1) / tp;
  const StagePass pass = pipeline_.pass(id);
  const bool has_next = pass.kind == PassKind::forward && pass.chunk + 1 < pipeline_.chunks();
  const Bytes choice = has_next ? choice_of_token_[static_cast<std::size_t>(pass.chunk + 1)] : Bytes{};
  return hidden_bytes(options().model, tokens) + tokens * choice;
}

std::vector<DealtMatrices> Program::matrices_of(std::int64_t stage) const {
  const Mesh& mesh = options().mesh;
  const bool deals = options().recipe.zero > 0;
  std::vector<DealtMatrices> all;
  for (const std::int64_t chunk : pipeline_.chunk_map().held(stage)) {
    for (const LayerRun& run : pipeline_.chunk_map().runs(options().model, chunk)) {
      for (WeightMatrix matrix : weight_matrices(context_->parts.kinds[run.kind].model, mesh.tp, mesh.experts())) {
        matrix.count *= run.count;
        const std::int64_t sharded = matrix.of_group ? mesh.expert_shards() : mesh.ranks_of_a_shard_group();
        all.push_back({matrix, deals ? sharded : 1});
      }
    }
  }
  return all;
}

std::int64_t Program::tensors_of(std::int64_t stage) const {
  constexpr std::int64_t norms = 2;  // of a layer
  const Mesh& mesh = options().mesh;
  const ChunkMap& chunks = pipeline_.chunk_map();
  std::int64_t tensors = (chunks.has_embedding(stage) ? 1 : 0) + (chunks.has_head(stage) ? 2 : 0);
  for (const LayerRun& run : layers_of_stage(options().model, chunks, stage)) {
    std::int64_t of_layer = norms;
    for (const WeightMatrix& matrix : weight_matrices(context_->parts.kinds[run.kind].model, mesh.tp, mesh.experts())) {
      of_layer += matrix.count;
    }
    tensors += of_layer * run.count;
  }
  return tensors;
}

StepEnd Program::step_end(std::int64_t stage) const {
  const Transformer& model = options().model;
  const Mesh& mesh = options().mesh;
  const Recipe& recipe = options().recipe;
  const ChunkMap& chunks = pipeline_.chunk_map();
  const DeviceParameters parameters = trained_parameters(model, layers_of_stage(model, chunks, stage), recipe,
                                                         stage_parameters(model, mesh, chunks, stage), mesh.tp);
  const DeviceParameters shard{divided(parameters.common, mesh.ranks_of_a_shard_group()),
                               divided(parameters.experts, mesh.expert_shards())};
  const std::int64_t updated = recipe.zero == 0 ? parameters.all() : shard.all();
  OptimizerShare share{parameters.all(), updated, mesh.hdp > 1};
  if (recipe.optimizer == Optimizer::muon) share.matrices = matrices_of(stage);
  StepEnd end{.gradient = {}, .optimizer = optimizer_work(share, model.element_bytes, recipe), .parameters = {}};
  end.all_reduce = recipe.reduces_all();
  if (!recipe.reduces_by_layer(true)) end.gradient = pool_bytes(parameters, recipe.gradient_bytes);
  if (recipe.zero > 0 && !recipe.gathers_by_layer(true)) {
    end.parameters = pool_bytes(parameters, recipe.gathered_type(), model.element_bytes);
  }
  if (recipe.updates_whole()) end.broadcasts = std::min(mesh.ranks_of_a_shard_group(), tensors_of(stage));
  if (is_narrow(recipe.products) && !recipe.lora.is_on()) {  // casts all parameters once per step
    end.optimizer.elementwise.traffic += Bytes(
        recipe.parameters == NumberType::fp8 ? transpose_bytes(recipe.products, parameters.weights)
                                             : cast_bytes(recipe.products, parameters.all(), model.element_bytes));
    ++end.optimizer.elementwise.kernels;
  }
  if (chunks.copies() > 1) {
    end.twice = Bytes(shard.all() * recipe.gradient_bytes);
    end.other_stage = chunks.twin(stage);
  } else if (model.tied_embeddings && !recipe.lora.is_on() && chunks.has_embedding(stage) != chunks.has_head(stage)) {
    end.twice = Bytes(table_parameters(model, mesh.tp) * fp32_bytes);
    end.other_stage = chunks.stage_of(chunks.has_embedding(stage) ? chunks.chunks() - 1 : 0, 0);
  }
  return end;
}

}  // namespace hdpsim
