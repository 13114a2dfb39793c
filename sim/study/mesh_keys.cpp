#include "sim/study/mesh_options.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "sim/base/quantity_limits.h"
#include "sim/program/layer_layout.h"
#include "sim/study/node_options.h"
#include "sim/study/sharing_choice.h"
#include "sim/study/training_options.h"

namespace hdpsim {
namespace {

using MeshKeys = KeyTable<PointSpec>;

// Products of three degrees fit into 64 bits.
constexpr Range ranks_range{1, limits::most_devices};
constexpr Range degree_range{1, 65536};
constexpr Range layers_range{1, 65536};
constexpr Range capacity_range{1, limits::most_tokens_of_sequence};

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
  if (value.is_map()) {
    point.choice = read_node_choice(value, point, diagnostics);
    return;
  }
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

void read_layout_of_layers(const Value& value, PointSpec& point, Diagnostics& diagnostics) {
  LayerLayout layout = read_layout(value.text);
  if (layout.problem.empty()) {
    point.pipeline.split.layout = std::move(layout.layers);
  } else {
    diagnostics.error(value.position, fmt::format("'layout' is no layout of layers: {}", layout.problem),
                      "write it as \"Ett|(ttt|)*6ttL\"");
  }
}

KeyShape schedule_shape() {
  const KeyShape name = word_shape(pipeline_schedule_names());
  return either_shape({name, map_shape({{"name", name, "", "", {.required = true}}})});
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
  mesh.count(
      "ep", ranks_range, at(&PointSpec::mesh, &Mesh::ep),
      "for a model with experts, the parts into which the devices of an expert group divide a layer's experts; 1: "
      "each expert is cut over tp",
      {.unit = "devices", .written = written_with_experts, .see = "experts"});
  mesh.count("etp", degree_range, at(&PointSpec::mesh, &Mesh::etp),
             "with `ep` above 1, the devices that cut each expert among each other (Megatron-LM's "
             "`--expert-tensor-parallel-size`): expert groups have ep x etp devices; 1: experts are whole",
             {.unit = "devices", .see = "experts"});
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
            either_shape({nodes_shape(), node_choice_shape()}),
            "",
            "the nodes of the job: `0-127`, `17`, `every 2`, `every 2 from 1`, or a list of these; or a map that says "
            "which nodes are free, and how the job's are chosen",
            {.otherwise = "all", .see = "nodes-among-other-jobs"}},
           read_nodes_of_job);
  std::vector<std::pair<std::string, std::string>> placements;
  for (const std::string& name : placement_names()) placements.emplace_back(name, name);
  mesh.word(
      "placement", "placement", placements, at(&PointSpec::placement),
      "the order of ranks: `strided`, tp-cp-ep-dp-pp, as in Megatron-LM, DeepSpeed and torchtitan; `contiguous`: the "
      "stages of an HDP rank are neighbours (Megatron-LM's --use-tp-pp-dp-mapping without cp and ep)",
      {.written = always_written});
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
  mesh.add(
      {"layout",
       shape_of(KeyShape::Kind::text),
       "",
       "the layers of every chunk, as Megatron-LM's pipeline_model_parallel_layout: `Et*3|(tt|)*29m|L`; a bar ends "
       "a chunk, `t` is a layer, `E` the embedding, `L` head and loss, `m` the layer for multi-token "
       "prediction, the model's last",
       {.otherwise = "layers are dealt evenly"}},
      read_layout_of_layers);
}

void add_pipeline(MeshKeys& mesh) {
  mesh.add({"schedule",
            schedule_shape(),
            pipeline_schedule_names().front(),
            "the order of a pipeline's passes (also written `{name: 1f1b}`)",
            {.written = written_with_stages}},
           read_schedule);
  mesh.count("virtual_stages", degree_range, at(&PointSpec::pipeline, &PipelineOptions::virtual_stages),
             "chunks of layers on each stage, 2 or more with `interleaved` and `combined-1f1b`",
             {.unit = "chunks", .written = written_with_stages});
  add_split(mesh);
}

void add_sharding(MeshKeys& mesh) {
  mesh.count(
      "zero", {0, 3}, at(&PointSpec::recipe, &Recipe::zero),
      "what is sharded over the HDP pool: nothing (0: gradients are all-reduced, all parameters updated "
      "everywhere), the optimizer (1), gradients too (2: reduced layer by layer in every micro-batch), parameters "
      "too (3: gathered layer by layer, forward and backward, one layer ahead; gradients are copied into FSDP's "
      "flat parameter and divided there before they are reduced)",
      recipe_notes(&Recipe::zero, {.written = always_written}));
  mesh.count("shard_ranks", {2, ranks_range.most}, at(&PointSpec::mesh, &Mesh::shard_ranks),
             "number of consecutive HDP ranks that shard what `zero` names; each such group has a full copy "
             "of the shards (FSDP's hybrid sharding, Megatron-LM's `--num-distributed-optimizer-instances`): "
             "parameters are gathered in a group, gradients reduce-scattered in a group and all-reduced over "
             "the groups; it divides the ranks; dense models only",
             {.unit = "ranks", .otherwise = "all ranks of the pool"});
}

void add_exchanges(MeshKeys& mesh) {
  mesh.word("cp_comm_type", "way in which the ranks of a group share keys and values", key_exchange_words(),
            at(&PointSpec::recipe, &Recipe::key_exchange), key_exchange_sentence(), {.see = "sharing"});
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
            at(&PointSpec::recipe, &Recipe::mixing_exchange),
            "how the ranks of a group share layers that mix tokens in linear time: `states`, the states at "
            "the ends of all parts of all sequences are sent to every rank; `heads`, ranks exchange tokens "
            "for heads, as many as divide the group and the heads of a device, and states pass between "
            "these; `fewest_bytes`, whichever sends fewer bytes",
            {.see = "sharing"});
  mesh.count("a2a_ranks", {0, 65536}, at(&PointSpec::recipe, &Recipe::a2a_ranks),
             "with `cp_comm_type: a2a`, the most ranks that exchange heads; a ring joins the rest "
             "(Transformer Engine's `a2a+p2p`); 0: no limit",
             {.unit = "ranks"});
  mesh.word("ring_nics", "choice of NICs", {{"own", NicUse::own}, {"all", NicUse::all}}, at(&PointSpec::ring_nics),
            "which NICs carry ring-attention traffic between nodes: `own`, those of the two ranks; `all`, "
            "every NIC of both nodes: the other devices of a node forward equal parts of what a rank sends "
            "(the routing layer of Zeppelin)",
            {.see = "sharing", .mechanism = "nic-spread", .off = "own"});
}

}  // namespace

const KeyTable<PointSpec>& mesh_keys() {
  static const MeshKeys table = [] {
    MeshKeys mesh("the mesh");
    add_degrees(mesh);
    add_places(mesh);
    add_pipeline(mesh);
    add_sharding(mesh);
    add_exchanges(mesh);
    return mesh;
  }();
  return table;
}

}  // namespace hdpsim
