#include "sim/study/mesh_keys.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "sim/base/quantity_limits.h"
#include "sim/model/experts.h"
#include "sim/model/layers.h"
#include "sim/study/mesh_options.h"
#include "sim/study/sharing_choice.h"

namespace hdpsim {
namespace {

using MeshKeys = KeyTable<PointSpec>;

// Products of three degrees fit into 64 bits.
constexpr Range ranks_range{1, limits::most_devices};
constexpr Range degree_range{1, 65536};
constexpr Range layers_range{1, 65536};
constexpr Range capacity_range{1, limits::most_tokens_of_sequence};

template <class Names>
std::vector<std::string> texts_of(const Names& names) {
  return {names.begin(), names.end()};
}

// The choices of an enumeration, whose order `names` has.
template <class Choice>
std::vector<std::pair<std::string, Choice>> choices_of(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, Choice>> choices;
  for (const std::string& name : names) choices.emplace_back(name, static_cast<Choice>(choices.size()));
  return choices;
}

template <class Member>
auto of_recipe(Member member) {
  return at(&PointSpec::recipe, member);
}

// The notes of a key that fills in a member of the recipe.
template <class Member>
KeyNotes notes_of(Member member, KeyNotes notes = {}) {
  if (is_for_dense_layers(member)) notes.fixed = "with experts";
  return notes;
}

void read_capacity(const Value& value, PointSpec& point, Diagnostics& diagnostics) {
  point.capacity_is_chosen = value.text == "auto";
  if (point.capacity_is_chosen) return;
  if (const auto tokens = read_in<std::int64_t>(value, "'capacity'", capacity_range, diagnostics)) {
    point.capacity = *tokens;
  }
}

// Without a cluster, which is reported elsewhere, its nodes cannot be checked.
void read_nodes_of_job(const Value& value, PointSpec& point, Diagnostics& diagnostics) {
  if (point.cluster.devices == 0) return;
  if (auto nodes = read_nodes(value, point.cluster, diagnostics)) point.nodes = std::move(*nodes);
}

void read_schedule(const Value& value, PointSpec& point, Diagnostics& diagnostics) {
  const Value* name = &value;
  if (value.is_map()) {
    MapReader map(value, "the schedule", diagnostics);
    name = map.require("name");
    map.finish();
  }
  if (name == nullptr) return;
  const auto choice = read_choice(*name, "schedule", pipeline_schedule_names(), diagnostics);
  if (choice) point.pipeline.schedule = pipeline_schedule_names()[*choice];
}

void check_module(const Value& item, LayerModule module, const Transformer& model, Diagnostics& diagnostics) {
  if (model.layers == 0) return;  // unknown, which is reported elsewhere
  const std::int64_t with_experts = expert_layers(model, layer_runs(model));
  if (module == LayerModule::experts && with_experts == 0) {
    diagnostics.error(item.position, fmt::format("no layer of {} has experts", model.name), "write mlp");
  }
  if (module == LayerModule::mlp && with_experts == model.layers) {
    diagnostics.error(item.position, fmt::format("every layer of {} has experts, not an MLP", model.name),
                      "write experts");
  }
}

// `value` is the name of a set, or a list of modules.
void read_recompute(const Value& value, PointSpec& point, Diagnostics& diagnostics) {
  if (!value.is_sequence()) {
    const auto choice = read_choice(value, "way to recompute activations", texts_of(recompute_names), diagnostics);
    if (choice) point.recipe.recompute = named_recomputes.at(*choice);
    return;
  }
  point.recipe.recompute = {};
  for (const Value& item : value.items) {
    const auto choice = read_choice(item, "module to recompute", texts_of(layer_module_names), diagnostics);
    if (!choice) continue;
    const auto module = static_cast<LayerModule>(*choice);
    check_module(item, module, point.model, diagnostics);
    point.recipe.recompute.add(module);
  }
}

KeyShape schedule_shape() {
  const KeyShape name = word_shape(pipeline_schedule_names());
  return either_shape({name, map_shape({{"name", name, "", "", {.required = true}}})});
}

KeyShape recompute_shape() {
  return either_shape({word_shape(texts_of(recompute_names)), list_shape(word_shape(texts_of(layer_module_names)))});
}

void add_degrees(MeshKeys& mesh) {
  mesh.count("tp", degree_range, at(&PointSpec::mesh, &Mesh::tp),
             "tensor parallelism; it divides the heads, and it divides a node or is a multiple of one",
             {.unit = "devices", .written = always_written});
  mesh.count("pp", degree_range, at(&PointSpec::mesh, &Mesh::pp),
             "pipeline stages; the layers are dealt to them evenly, what is left over one each to the first (but see "
             "`account_for_embedding`, `first_stage_layers`)",
             {.unit = "stages", .written = always_written});
  mesh.count("hdp", ranks_range, at(&PointSpec::mesh, &Mesh::hdp), "HDP ranks",
             {.unit = "ranks", .otherwise = "devices / (tp x pp)"});
  mesh.count("ep", ranks_range, at(&PointSpec::mesh, &Mesh::ep),
             "for a model with experts, the devices of an expert group, among which a layer's experts are divided; 1: "
             "each expert is cut over tp",
             {.unit = "devices", .written = written_with_experts, .see = "experts"});
  mesh.add({"capacity",
            either_shape({word_shape({"auto"}), count_shape(capacity_range, "tokens")}),
            count_text(PointSpec{}.capacity),
            "maximum tokens per micro-batch on one rank, that is one context-parallel position "
            "(Megatron-LM's `--max-seqlen-per-dp-cp-rank`); `auto`: the largest multiple of 256 that fits "
            "the smallest device without offload, less the largest gaps of the allocator that were measured",
            {.written = always_written, .see = "memory"}},
           read_capacity);
}

void add_places(MeshKeys& mesh) {
  mesh.add({"nodes",
            nodes_shape(),
            "",
            "the nodes of the job: `0-127`, `17`, `every 2`, `every 2 from 1`, or a list of these",
            {.otherwise = "all"}},
           read_nodes_of_job);
  std::vector<std::pair<std::string, std::string>> placements;
  for (const std::string& name : placement_names()) placements.emplace_back(name, name);
  mesh.word("placement", "placement", placements, at(&PointSpec::placement),
            "which device runs which part of which rank", {.written = always_written});
  mesh.word("groups", "way to make groups",
            {{"one_communicator", Communicators::one}, {"communicators", Communicators::per_group}},
            at(&PointSpec::connections, &ConnectionOptions::communicators),
            "NCCL communicators: one of all ranks, in which rings are sends and receives "
            "(`one_communicator`), or one for each distinct group of ranks, created at its first use and "
            "kept (`communicators`)",
            {.written = always_written});
  mesh.word("connections", "state of connections", {{"warm", false}, {"cold", true}},
            at(&PointSpec::connections, &ConnectionOptions::cold),
            "`warm`: all connections exist; `cold`: each step is the first of a job, which sets them up",
            {.written = always_written, .see = "cold-steps", .mechanism = "cold-connections", .off = "warm"});
}

void add_split(MeshKeys& mesh) {
  const auto of_split = [](auto member) { return at(&PointSpec::pipeline, &PipelineOptions::split, member); };
  mesh.flag(
      "account_for_embedding", of_split(&LayerSplit::counts_embedding),
      "the embedding counts as a layer when layers are dealt to the stages, so that the first chunk has one less, "
      "perhaps none (Megatron-LM's account_for_embedding_in_pipeline_split)");
  mesh.flag("account_for_loss", of_split(&LayerSplit::counts_loss),
            "the output head and the loss count as a layer, so that the last chunk has one less");
  mesh.count("first_stage_layers", layers_range, of_split(&LayerSplit::first_stage),
             "layers of the first stage (Megatron-LM's decoder_first_pipeline_num_layers); the rest is dealt evenly",
             {.unit = "layers", .otherwise = "as many as the others"});
  mesh.count("last_stage_layers", layers_range, of_split(&LayerSplit::last_stage), "layers of the last stage",
             {.unit = "layers", .otherwise = "as many as the others"});
}

void add_pipeline(MeshKeys& mesh) {
  mesh.add({"schedule",
            schedule_shape(),
            pipeline_schedule_names().front(),
            "the order of a pipeline's passes (also written `{name: 1f1b}`)",
            {.written = written_with_stages}},
           read_schedule);
  mesh.count("virtual_stages", degree_range, at(&PointSpec::pipeline, &PipelineOptions::virtual_stages),
             "chunks of layers on each stage, 2 or more with `interleaved`",
             {.unit = "chunks", .written = written_with_stages});
  add_split(mesh);
  mesh.word("overlap_p2p_comm", "overlap of messages between stages",
            {{"always", MessageOverlap::always},
             {"interleaved", MessageOverlap::interleaved},
             {"never", MessageOverlap::never}},
            at(&PointSpec::pipeline, &PipelineOptions::message_overlap),
            "which messages between stages overlap with passes: all, those under `virtual_stages` (as in "
            "Megatron-LM), or none; a stage sends the others before its next pass");
}

void add_sharding(MeshKeys& mesh) {
  mesh.add({"recompute",
            recompute_shape(),
            std::string(recompute_names.front()),
            "what backward recomputes: nothing, the attention core (`selective`), the whole layer (`full`), "
            "or a list of modules as in Megatron-LM (`activation`: that of the MLP or of experts): `[norm, "
            "activation]`",
            {.written = always_written, .mechanism = "recompute", .off = "none"}},
           read_recompute);
  mesh.count(
      "zero", {0, 3}, of_recipe(&Recipe::zero),
      "what is sharded over the HDP pool: nothing (0: gradients are all-reduced, all parameters updated "
      "everywhere), the optimizer (1), gradients too (2: reduced layer by layer in every micro-batch), parameters "
      "too (3: gathered layer by layer, forward and backward, one layer ahead; gradients are copied into FSDP's "
      "flat parameter and divided there before they are reduced)",
      notes_of(&Recipe::zero, {.written = always_written}));
  mesh.count("shard_ranks", {2, ranks_range.most}, at(&PointSpec::mesh, &Mesh::shard_ranks),
             "number of consecutive HDP ranks that shard what `zero` names; each such group has a full copy "
             "of the shards (FSDP's hybrid sharding, Megatron-LM's `--num-distributed-optimizer-instances`): "
             "parameters are gathered in a group, gradients reduce-scattered in a group and all-reduced over "
             "the groups; it divides the ranks; dense models only",
             {.unit = "ranks", .otherwise = "all ranks of the pool"});
  mesh.word("optimizer", "optimizer", {{"adam", Optimizer::adam}, {"lamb", Optimizer::lamb}, {"muon", Optimizer::muon}},
            of_recipe(&Recipe::optimizer),
            "what updates the parameters: `adam`; `lamb`, which also takes the norms of weights and updates; `muon`, "
            "which keeps one moment of matrices and orthogonalizes them in five iterations, whole matrices dealt to "
            "the ranks of the pool (levels 0 and 1 of `zero`)",
            {.see = "optimizers"});
  mesh.word("moments", "type of moments", {{"fp32", 4}, {"bf16", 2}, {"fp8", 1}}, of_recipe(&Recipe::moment_bytes),
            "the type of the optimizer's moments; the master weight is fp32 (Megatron-LM's `--exp-avg-dtype` "
            "and `--exp-avg-sq-dtype`)",
            {.see = "optimizers"});
  mesh.word("gradients", "type of gradients", {{"fp32", 4}, {"bf16", 2}}, of_recipe(&Recipe::gradient_bytes),
            "the type in which gradients are summed over micro-batches and ranks; write `bf16` for fp16",
            notes_of(&Recipe::gradient_bytes));
  mesh.word("parameters", "type of parameters", {{"bf16", false}, {"fp32", true}}, of_recipe(&Recipe::fp32_parameters),
            "with `zero: 3`, the type in which parameters are sharded and gathered: `fp32` is autocast over what "
            "FSDP gathers without a `param_dtype`: twice the bytes, a cast of every weight to bf16 and of its "
            "gradient back, and a residual stream in fp32",
            notes_of(&Recipe::fp32_parameters, {.see = "memory"}));
}

void add_flag(MeshKeys& mesh, const std::string& name, bool Recipe::*member, const std::string& sentence) {
  mesh.flag(name, of_recipe(member), sentence, notes_of(member));
}

void add_overlaps(MeshKeys& mesh) {
  mesh.word("activation_input", "type of the activation's kept input", {{"bf16", false}, {"fp8", true}},
            of_recipe(&Recipe::fp8_activation_input),
            "the type in which layers keep the input of the activation of an MLP or of experts: for `fp8` a "
            "kernel casts it in forward, and another back in backward (Megatron-LM's "
            "`--activation-func-fp8-input-store`)",
            {.see = "products-in-fp8"});
  add_flag(mesh, "gradient_accumulation_fusion", &Recipe::accumulation_fusion,
           "weight-gradient GEMMs accumulate into the sums over micro-batches; `false`: a separate kernel "
           "reads each gradient and adds it, as in Megatron-LM of 2021");
  mesh.word("cp_comm_type", "way in which the ranks of a group share keys and values", key_exchange_words(),
            of_recipe(&Recipe::key_exchange), key_exchange_sentence(), {.see = "sharing"});
  mesh.word("cp_cut", "way in which the ranks of a group divide their tokens", cut_words(), at(&PointSpec::cut),
            "which tokens each rank of a group holds: `per_document`, two of 2N parts of every document, so that all "
            "have equal attention; `per_pack`, two of 2N parts of the whole pack; `dispatch`, chunks of the pack that "
            "are dealt by their attention (MagiAttention); `adaptive`, per document or per pack, whichever is faster "
            "for the micro-batch (WLB-LLM)",
            {.see = "sharing"});
  mesh.word("mixing_exchange", "way in which the ranks of a group share linear mixing",
            {{"fewest_bytes", MixingExchange::fewest_bytes},
             {"states", MixingExchange::states},
             {"heads", MixingExchange::heads}},
            of_recipe(&Recipe::mixing_exchange),
            "how the ranks of a group share layers that mix tokens in linear time: `states`, the states at "
            "the ends of all parts of all sequences are sent to every rank; `heads`, ranks exchange tokens "
            "for heads, as many as divide the group and the heads of a device, and states pass between "
            "these; `fewest_bytes`, whichever sends fewer bytes",
            {.see = "sharing"});
  mesh.count("a2a_ranks", {0, 65536}, of_recipe(&Recipe::a2a_ranks),
             "with `cp_comm_type: a2a`, the most ranks that exchange heads; a ring joins the rest "
             "(Transformer Engine's `a2a+p2p`); 0: no limit",
             {.unit = "ranks"});
  mesh.word("ring_nics", "choice of NICs", {{"own", NicUse::own}, {"all", NicUse::all}}, at(&PointSpec::ring_nics),
            "which NICs carry ring-attention traffic between nodes: `own`, those of the two ranks; `all`, "
            "every NIC of both nodes: the other devices of a node forward equal parts of what a rank sends "
            "(the routing layer of Zeppelin)",
            {.see = "sharing", .mechanism = "nic-spread", .off = "own"});
  add_flag(mesh, "separate_merge", &Recipe::separate_merge,
           "a separate kernel merges the output of each ring step into the result so far, as in Transformer "
           "Engine; `false`: the attention kernel accumulates it, as the kernels of `hdpsim execute` do");
  add_flag(mesh, "dropout", &Recipe::dropout,
           "dropout kernels and masks after the embedding and both branches of a layer, and of the scores "
           "where they are in memory");
  add_flag(mesh, "gradient_buffer", &Recipe::gradient_buffer,
           "levels 0 and 1 of `zero`: Megatron-Core's contiguous gradient buffer, which is zeroed, checked "
           "for NaN and scaled once a step, whose norm is taken, and whose fp32 weights are copied to "
           "parameters; a kernel adds the embedding table's gradient, which is dense, to it in every "
           "micro-batch; `false`: only the optimizer's own kernel runs, and rows of the table are added in "
           "place");
  add_flag(mesh, "overlap_grad_reduce", &Recipe::overlap_grad_reduce,
           "levels 0 and 1 of `zero`: gradients are reduced bucket by bucket, overlapped with the last "
           "backward");
  add_flag(mesh, "overlap_param_gather", &Recipe::overlap_param_gather,
           "levels 1 and 2 of `zero`: parameters are gathered bucket by bucket, overlapped with the first "
           "forward");
  mesh.count("bucket_parameters", {0, 1e12}, of_recipe(&Recipe::bucket),
             "size of a bucket of these two: parameters on a device, of several layers where they are "
             "smaller; the last reduction of a step follows its layers (Megatron-LM's `--ddp-bucket-size`); "
             "0: its default, 40 million or, if that is more, a million for each rank of the data-parallel "
             "group",
             {.unit = "parameters"});
  add_flag(mesh, "sequence_parallel", &Recipe::sequence_parallel,
           "Megatron-LM's sequence parallelism under `tp`: norms and residuals work on 1 / tp of the "
           "tokens, with all-gathers and reduce-scatters between them; `false`: on all tokens, with "
           "all-reduces");
  add_flag(mesh, "tp_comm_overlap", &Recipe::overlap_tp,
           "these all-gathers and reduce-scatters run in tp chunks, overlapped with the GEMM whose input or "
           "output they move (Megatron-LM's `--tp-comm-overlap`)");
  add_flag(mesh, "tp_gradient_overlap", &Recipe::overlap_tp_gradients,
           "overlaps the tensor-parallel all-reduce (or reduce-scatter) of input gradients with the "
           "weight-gradient GEMM, and gathers the input again during the input-gradient GEMM (Megatron-LM's "
           "async all-reduce); `false`: no overlap, and inputs are taken as gathered already, although "
           "memory counts a part of them");
}

}  // namespace

KeyShape nodes_shape() {
  const KeyShape nodes = either_shape({shape_of(KeyShape::Kind::count), shape_of(KeyShape::Kind::text)});
  return either_shape({shape_of(KeyShape::Kind::count), shape_of(KeyShape::Kind::text), list_shape(nodes)});
}

const KeyTable<PointSpec>& mesh_keys() {
  static const MeshKeys table = [] {
    MeshKeys mesh("the mesh");
    add_degrees(mesh);
    add_places(mesh);
    add_pipeline(mesh);
    add_sharding(mesh);
    add_overlaps(mesh);
    return mesh;
  }();
  return table;
}

}  // namespace hdpsim
