#include "sim/study/training_options.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/model/experts.h"
#include "sim/model/layers.h"

namespace hdpsim {
namespace {

using TrainingKeys = KeyTable<PointSpec>;

template <class Names>
std::vector<std::string> texts_of(const Names& names) {
  return {names.begin(), names.end()};
}

template <class Member>
auto of_recipe(Member member) {
  return at(&PointSpec::recipe, member);
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

KeyShape recompute_shape() {
  return either_shape({word_shape(texts_of(recompute_names)), list_shape(word_shape(texts_of(layer_module_names)))});
}

void add_states(TrainingKeys& training) {
  training.word(
      "optimizer", "optimizer", {{"adam", Optimizer::adam}, {"lamb", Optimizer::lamb}, {"muon", Optimizer::muon}},
      of_recipe(&Recipe::optimizer),
      "what updates the parameters: `adam`; `lamb`, which also takes the norms of weights and updates; `muon`, "
      "which keeps one moment of matrices and orthogonalizes them in five iterations, whole matrices dealt to "
      "the ranks of the pool (levels 0 and 1 of `zero`)",
      {.see = "optimizers", .formerly = "mesh.optimizer"});
  training.word("moments", "type of moments", {{"fp32", 4}, {"bf16", 2}, {"fp8", 1}}, of_recipe(&Recipe::moment_bytes),
                "the type of the optimizer's moments; the master weight is fp32 (Megatron-LM's `--exp-avg-dtype` "
                "and `--exp-avg-sq-dtype`)",
                {.see = "optimizers", .formerly = "mesh.moments"});
  training.word("gradients", "type of gradients", {{"fp32", 4}, {"bf16", 2}}, of_recipe(&Recipe::gradient_bytes),
                "the type in which gradients are summed over micro-batches and ranks; write `bf16` for fp16",
                recipe_notes(&Recipe::gradient_bytes, {.formerly = "mesh.gradients"}));
  training.word("parameters", "type of parameters", {{"bf16", false}, {"fp32", true}},
                of_recipe(&Recipe::fp32_parameters),
                "with `zero: 3`, the type in which parameters are sharded and gathered: `fp32` is autocast over what "
                "FSDP gathers without a `param_dtype`: twice the bytes, a cast of every weight to bf16 and of its "
                "gradient back, and a residual stream in fp32",
                recipe_notes(&Recipe::fp32_parameters, {.see = "memory", .formerly = "mesh.parameters"}));
  training.word("activation_input", "type of the activation's kept input", {{"bf16", false}, {"fp8", true}},
                of_recipe(&Recipe::fp8_activation_input),
                "the type in which layers keep the input of the activation of an MLP or of experts: for `fp8` a "
                "kernel casts it in forward, and another back in backward (Megatron-LM's "
                "`--activation-func-fp8-input-store`)",
                {.see = "products-in-fp8", .formerly = "mesh.activation_input"});
}

void add_flag(TrainingKeys& training, const std::string& name, bool Recipe::*member, const std::string& sentence,
              KeyNotes notes) {
  training.flag(name, of_recipe(member), sentence, recipe_notes(member, notes));
}

void add_passes(TrainingKeys& training) {
  training.add({"recompute",
                recompute_shape(),
                std::string(recompute_names.front()),
                "what backward recomputes: nothing, the attention core (`selective`), the whole layer (`full`), "
                "or a list of modules as in Megatron-LM (`activation`: that of the MLP or of experts): `[norm, "
                "activation]`",
                {.written = always_written, .mechanism = "recompute", .off = "none", .formerly = "mesh.recompute"}},
               read_recompute);
  add_flag(training, "dropout", &Recipe::dropout,
           "dropout kernels and masks after the embedding and both branches of a layer, and of the scores "
           "where they are in memory",
           {.formerly = "mesh.dropout"});
  training.word(
      "loss", "way to compute the loss", {{"fused", true}, {"fp32", false}}, of_recipe(&Recipe::fused_loss),
      "`fused`: a fused cross-entropy that turns bf16 logits into their gradient in place; `fp32`: unfused, kernel "
      "by kernel on an fp32 copy, as Megatron-LM without fusion; it changes time and memory",
      {.written = always_written, .formerly = "memory.loss"});
  add_flag(training, "separate_merge", &Recipe::separate_merge,
           "a separate kernel merges the output of each ring step into the result so far, as in Transformer "
           "Engine; `false`: the attention kernel accumulates it, as the kernels of `hdpsim execute` do",
           {.formerly = "mesh.separate_merge"});
  add_flag(training, "gradient_accumulation_fusion", &Recipe::accumulation_fusion,
           "weight-gradient GEMMs accumulate into the sums over micro-batches; `false`: a separate kernel "
           "reads each gradient and adds it, as in Megatron-LM of 2021",
           {.formerly = "mesh.gradient_accumulation_fusion"});
  add_flag(training, "gradient_buffer", &Recipe::gradient_buffer,
           "levels 0 and 1 of `zero`: Megatron-Core's contiguous gradient buffer, which is zeroed, checked "
           "for NaN and scaled once a step, whose norm is taken, and whose fp32 weights are copied to "
           "parameters; a kernel adds the embedding table's gradient, which is dense, to it in every "
           "micro-batch; `false`: only the optimizer's own kernel runs, and rows of the table are added in "
           "place",
           {.formerly = "mesh.gradient_buffer"});
}

void add_overlaps(TrainingKeys& training) {
  add_flag(training, "overlap_grad_reduce", &Recipe::overlap_grad_reduce,
           "levels 0 and 1 of `zero`: gradients are reduced bucket by bucket, overlapped with the last "
           "backward",
           {.formerly = "mesh.overlap_grad_reduce"});
  add_flag(training, "overlap_param_gather", &Recipe::overlap_param_gather,
           "levels 1 and 2 of `zero`: parameters are gathered bucket by bucket, overlapped with the first "
           "forward",
           {.formerly = "mesh.overlap_param_gather"});
  training.count("bucket_parameters", {0, 1e12}, of_recipe(&Recipe::bucket),
                 "size of a bucket of these two: parameters on a device, of several layers where they are "
                 "smaller; the last reduction of a step follows its layers (Megatron-LM's `--ddp-bucket-size`); "
                 "0: its default, 40 million or, if that is more, a million for each rank of the data-parallel "
                 "group",
                 {.unit = "parameters", .formerly = "mesh.bucket_parameters"});
  add_flag(training, "sequence_parallel", &Recipe::sequence_parallel,
           "Megatron-LM's sequence parallelism under `tp`: norms and residuals work on 1 / tp of the "
           "tokens, with all-gathers and reduce-scatters between them; `false`: on all tokens, with "
           "all-reduces",
           {.formerly = "mesh.sequence_parallel"});
  add_flag(training, "tp_comm_overlap", &Recipe::overlap_tp,
           "these all-gathers and reduce-scatters run in tp chunks, overlapped with the GEMM whose input or "
           "output they move (Megatron-LM's `--tp-comm-overlap`)",
           {.formerly = "mesh.tp_comm_overlap"});
  add_flag(training, "tp_gradient_overlap", &Recipe::overlap_tp_gradients,
           "overlaps the tensor-parallel all-reduce (or reduce-scatter) of input gradients with the "
           "weight-gradient GEMM, and gathers the input again during the input-gradient GEMM (Megatron-LM's "
           "async all-reduce); `false`: no overlap, and inputs are taken as gathered already, although "
           "memory counts a part of them",
           {.formerly = "mesh.tp_gradient_overlap"});
  training.word("overlap_p2p_comm", "overlap of messages between stages",
                {{"always", MessageOverlap::always},
                 {"interleaved", MessageOverlap::interleaved},
                 {"never", MessageOverlap::never}},
                at(&PointSpec::pipeline, &PipelineOptions::message_overlap),
                "which messages between stages overlap with passes: all, those under `virtual_stages` (as in "
                "Megatron-LM), or none; a stage sends the others before its next pass",
                {.formerly = "mesh.overlap_p2p_comm"});
}

constexpr Between<Bytes> reserve_range{Bytes(0), limits::memory.most};

void read_reserve(const Value& value, Recipe& recipe, Diagnostics& diagnostics) {
  if (value.text == "auto") return;
  recipe.reserve = read_in<Bytes>(value, "'reserve'", reserve_range, diagnostics);
}

const KeyTable<Recipe>& memory_table() {
  static const auto made = [] {
    KeyTable<Recipe> memory("the memory");
    memory.number("fragmentation", {0, 1}, at(&Recipe::fragmentation),
                  "gaps of the allocator, as a share of what is allocated", {.written = always_written});
    KeyShape amount = shape_of(KeyShape::Kind::bytes);
    amount.limits = range_text(reserve_range);
    memory.add({"reserve",
                either_shape({word_shape({"auto"}), amount}),
                "auto",
                "device memory outside of the allocator; `auto`: 426 MiB for the CUDA context and 688 MiB for a "
                "communicator each of the tensor-parallel group and the pool",
                {.written = always_written}},
               read_reserve);
    return memory;
  }();
  return made;
}

}  // namespace

const KeyTable<PointSpec>& training_keys() {
  static const TrainingKeys table = [] {
    TrainingKeys training("the training");
    add_states(training);
    add_passes(training);
    add_overlaps(training);
    return training;
  }();
  return table;
}

const std::vector<KeyText>& memory_keys() {
  return memory_table().texts();
}

void read_memory(const Value& value, Recipe& recipe, Diagnostics& diagnostics) {
  (void)memory_table().read(value, recipe, diagnostics);
}

}  // namespace hdpsim
