#include "sim/study/training_options.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/model/experts.h"
#include "sim/model/layers.h"
#include "sim/model/lora.h"
#include "sim/model/number_type.h"

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

std::vector<std::pair<std::string, Loss>> loss_words() {
  std::vector<std::pair<std::string, Loss>> words;
  for (const LossForm& form : loss_forms) words.emplace_back(form.word, form.loss);
  return words;
}

// Which operations a framework saves is known of plain attention and dense MLPs.
void check_operations(const Value& value, const Transformer& model, Diagnostics& diagnostics) {
  for (std::size_t kind = 0; kind < layer_kinds(model); ++kind) {
    const Transformer layer = of_kind(model, kind);
    if (!layer.moe && !layer.linear && !layer.latent) continue;
    diagnostics.error(value.position,
                      fmt::format("{} has layers with experts, latents or linear mixing, of which 'per_operation' is "
                                  "not known",
                                  model.name),
                      "write full, or a list of modules");
    return;
  }
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
    if (point.recipe.recompute == Recompute::per_operation) check_operations(value, point.model, diagnostics);
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

// Megatron's names for products of one weight stand for HuggingFace's.
constexpr std::array<std::pair<std::string_view, AdapterTarget>, 2> other_target_names = {
    {{"linear_proj", AdapterTarget::o_proj}, {"linear_fc2", AdapterTarget::down_proj}}};

std::vector<std::string> target_words() {
  std::vector<std::string> words = texts_of(adapter_target_names);
  for (const auto& [name, target] : other_target_names) words.emplace_back(name);
  return words;
}

// `value` is all-linear, or a list of targets.
void read_targets(const Value& value, Lora& lora, Diagnostics& diagnostics) {
  if (!value.is_sequence()) {
    (void)read_choice(value, "set of targets", {"all-linear"}, diagnostics);
    return;
  }
  lora.targets = {};
  for (const Value& item : value.items) {
    const auto choice = read_choice(item, "target of adapters", target_words(), diagnostics);
    if (!choice) continue;
    const bool is_own = *choice < adapter_targets;
    lora.targets.add(is_own ? static_cast<AdapterTarget>(*choice)
                            : other_target_names.at(*choice - adapter_targets).second);
  }
  if (value.items.empty()) diagnostics.error(value.position, "adapters need a target", "write targets: all-linear");
}

void add_states(TrainingKeys& training) {
  training.word(
      "optimizer", "optimizer", {{"adam", Optimizer::adam}, {"lamb", Optimizer::lamb}, {"muon", Optimizer::muon}},
      of_recipe(&Recipe::optimizer),
      "what updates the parameters: `adam`; `lamb`, which also takes the norms of weights and updates; `muon`, "
      "which keeps one moment of matrices and orthogonalizes them in five iterations, whole matrices dealt to "
      "the ranks of the pool (levels 0 and 1 of `zero`)",
      {.see = "optimizers", .formerly = "mesh.optimizer"});
  training.word(
      "moments", "type of moments",
      {{"fp32", NumberType::fp32},
       {"bf16", NumberType::bf16},
       {"fp8", NumberType::fp8},
       {"int8", NumberType::int8},
       {"int4", NumberType::int4}},
      of_recipe(&Recipe::moments),
      "the type of the optimizer's moments (Megatron-LM's `--exp-avg-dtype` and `--exp-avg-sq-dtype`); `int8`: "
      "with an fp32 scale for 256 numbers (8-bit Adam of bitsandbytes and torchao); `int4`: for 128 (torchao)",
      {.see = "optimizers", .formerly = "mesh.moments"});
  training.word(
      "master", "copy of parameters",
      {{"fp32", NumberType::fp32}, {"bf16", NumberType::bf16}, {"none", NumberType::none}}, of_recipe(&Recipe::master),
      "the copy that the optimizer updates besides parameters in fewer bits than fp32: `bf16` for two bytes, as "
      "the remainder of an fp32 number or Megatron-LM's `--main-params-dtype fp16`; `none`: parameters "
      "themselves are updated (pure bf16, with stochastic rounding or without)",
      {.see = "states"});
  training.word("gradients", "type of gradients", {{"fp32", 4}, {"bf16", 2}}, of_recipe(&Recipe::gradient_bytes),
                "the type in which gradients are summed over micro-batches and ranks; write `bf16` for fp16",
                recipe_notes(&Recipe::gradient_bytes, {.formerly = "mesh.gradients"}));
  training.word("parameters", "type of parameters",
                {{"bf16", NumberType::bf16}, {"fp32", NumberType::fp32}, {"fp8", NumberType::fp8}},
                of_recipe(&Recipe::parameters),
                "the type in which parameters are kept, sharded and gathered: `fp32`, unless `gather` or `lora` say "
                "otherwise, is autocast (FSDP without a `param_dtype`, DDP under `torch.autocast`): a cast of every "
                "weight to bf16 and of its gradient back, and a residual stream in fp32; `fp8`: weights of layers, "
                "whose products are in fp8 (Megatron-LM's `--fp8-param-gather`)",
                recipe_notes(&Recipe::parameters, {.see = "states", .formerly = "mesh.parameters"}));
  training.word("gather", "type of gathered parameters",
                {{"kept", NumberType::none}, {"bf16", NumberType::bf16}, {"fp8", NumberType::fp8}},
                of_recipe(&Recipe::gathered),
                "with `zero: 3`, the type in which shards are gathered: that in which they are kept; `bf16`: of fp32 "
                "shards (`param_dtype` of FSDP2); `fp8`: weights of layers, whose products are in fp8 (torchao's "
                "`enable_fsdp_float8_all_gather`)",
                {.see = "states"});
  training.word(
      "reduce", "type of reduced gradients", {{"elements", false}, {"fp32", true}}, of_recipe(&Recipe::reduces_fp32),
      "with `zero: 2` and `3`, the type in which ranks sum a micro-batch's gradients: that of activations, or "
      "fp32 (`reduce_dtype` of FSDP2)",
      recipe_notes(&Recipe::reduces_fp32, {.see = "states"}));
  training.word(
      "shards", "what FSDP shards", {{"flat", false}, {"parameters", true}}, of_recipe(&Recipe::parameter_shards),
      "with `zero: 3`, what is sharded: the flat parameter of a layer (FSDP of PyTorch 2.0), or each parameter "
      "(`fully_shard`, FSDP2), which copies what it gathers to parameters and gradients to what it reduces",
      {.see = "layers-of-pytorch"});
  training.word("activation_input", "type of the activation's kept input", {{"bf16", false}, {"fp8", true}},
                of_recipe(&Recipe::fp8_activation_input),
                "the type in which layers keep the input of the activation of an MLP or of experts: for `fp8` a "
                "kernel casts it in forward, and another back in backward (Megatron-LM's "
                "`--activation-func-fp8-input-store`)",
                {.see = "products-in-fp8", .formerly = "mesh.activation_input"});
}

const KeyTable<Lora>& lora_table() {
  static const auto made = [] {
    KeyTable<Lora> keys("'lora'");
    keys.count("rank", {1, 1e5}, at(&Lora::rank), "columns of an adapter's first product", {.required = true});
    keys.add(
        {"targets",
         either_shape({word_shape({"all-linear"}), list_shape(word_shape(target_words()))}),
         "all-linear",
         "the products that have adapters: each weight by its own (HuggingFace's names), or weights of one product "
         "by one (Megatron-Bridge's `linear_qkv`, `linear_proj`, `linear_fc1`, `linear_fc2`)",
         {}},
        read_targets);
    keys.flag("dropout", at(&Lora::dropout), "adapters drop some of their input, and keep a copy of the rest");
    keys.word("base", "type of frozen weights",
              {{"bf16", NumberType::bf16}, {"nf4", NumberType::nf4}, {"nf4_double", NumberType::nf4_double}},
              at(&Lora::base),
              "the type of the layers' frozen weights; in 4 bits (QLoRA; `nf4_double`: with double quantization) a "
              "kernel makes elements of them for every product");
    return keys;
  }();
  return made;
}

const KeyTable<HostStates>& host_table() {
  static const auto made = [] {
    KeyTable<HostStates> keys("'host'");
    keys.number("optimizer", {0, 1}, at(&HostStates::optimizer),
                "the share of parameters whose gradients and optimizer states are in host memory, and which the host "
                "updates (DeepSpeed's `offload_optimizer`, its `ratio`; Megatron-LM's `--optimizer-offload-fraction`)");
    keys.flag("parameters", at(&HostStates::parameters),
              "with `zero: 3`, shards of parameters are in host memory, too, and are copied from there before each "
              "gather (DeepSpeed's `offload_param`)");
    keys.flag("overlap", at(&HostStates::overlaps),
              "copies at the end of a step overlap with the update (Megatron-LM's `--overlap-cpu-optimizer-d2h-h2d`)");
    keys.number(
        "updates_per_s", {1e3, 1e15}, at(&HostStates::updates_per_s),
        "parameters that one host updates a second; the default is DeepSpeed's CPU-Adam on the two Xeon 8168 of "
        "a DGX-2: 10 billion in 2.57 s (arXiv 2101.06840, table 4)");
    return keys;
  }();
  return made;
}

void add_parts(TrainingKeys& training) {
  training.add({"lora",
                map_shape(lora_table().texts()),
                "",
                "low-rank adapters of a frozen model, which alone are trained",
                {.otherwise = "all parameters are trained", .see = "adapters"}},
               [](const Value& value, PointSpec& point, Diagnostics& diagnostics) {
                 (void)lora_table().read(value, point.recipe.lora, diagnostics);
               });
  training.add({"host",
                map_shape(host_table().texts()),
                "",
                "what of the states is in host memory",
                {.otherwise = "nothing", .see = "states-in-host-memory"}},
               [](const Value& value, PointSpec& point, Diagnostics& diagnostics) {
                 (void)host_table().read(value, point.recipe.host, diagnostics);
               });
}

void add_flag(TrainingKeys& training, const std::string& name, bool Recipe::*member, const std::string& sentence,
              KeyNotes notes) {
  training.flag(name, of_recipe(member), sentence, recipe_notes(member, notes));
}

void add_passes(TrainingKeys& training) {
  training.add(
      {"recompute",
       recompute_shape(),
       std::string(recompute_names.front()),
       "what backward recomputes: nothing, the attention core (`selective`), the whole layer (`full`), all but "
       "the outputs of every second product, of attention and of sums over `tp` (`per_operation`, "
       "torchtitan's selective `op`), or a list of modules as in Megatron-LM (`activation`: that of the MLP "
       "or of experts): `[norm, activation]`",
       {.written = always_written, .mechanism = "recompute", .off = "none", .formerly = "mesh.recompute"}},
      read_recompute);
  add_flag(
      training, "early_stop", &Recipe::early_stop,
      "with `kernels.layers: eager`, a layer that is computed again ends before its last product, whose output nobody "
      "reads, as PyTorch's checkpoints do; `false`: behind it, as with `use_reentrant` (HuggingFace's default "
      "until 2026) and in torchtitan's last release with TOML",
      {.see = "layers-of-pytorch"});
  add_flag(training, "dropout", &Recipe::dropout,
           "dropout kernels and masks after the embedding and both branches of a layer, and of the scores "
           "where they are in memory",
           {.formerly = "mesh.dropout"});
  training.word(
      "loss", "way to compute the loss", loss_words(), of_recipe(&Recipe::loss),
      "`fused`: a fused cross-entropy that turns bf16 logits into their gradient in place; `fp32`: unfused, kernel "
      "by kernel on an fp32 copy, as Megatron-LM without fusion; `pytorch`: PyTorch's on an fp32 copy, in eager mode "
      "(torchtitan, HuggingFace since 4.49); `huggingface`: the same on a shifted copy (until 4.48); `compiled`: "
      "PyTorch's, compiled; `chunked`: PyTorch's for an eighth of the tokens at a time (torchtitan); `checkpointed`: "
      "for 256 tokens at a time, whose logits backward makes again (TRL's `chunked_nll`); `liger`: Liger's, fused with "
      "the head's product chunk by chunk; `cut`: cut cross-entropy, without logits in memory. It changes time and "
      "memory",
      {.written = always_written, .see = "losses", .formerly = "memory.loss"});
  add_flag(training, "repeat_keys", &Recipe::repeats_keys,
           "keys and values are copied for each head of queries that reads them, before attention and before ranks "
           "exchange them, as torchtitan's models did until January 2026 (`repeat_kv`)",
           {.see = "layers-of-pytorch"});
  add_flag(training, "separate_merge", &Recipe::separate_merge,
           "a separate kernel merges the output of each ring step into the result so far, as in Transformer "
           "Engine; `false`: the attention kernel accumulates it, as the kernels of `hdpsim execute` do",
           {.formerly = "mesh.separate_merge"});
  add_flag(training, "gradient_accumulation_fusion", &Recipe::accumulation_fusion,
           "weight-gradient GEMMs accumulate into the sums over micro-batches; `false`: a separate kernel "
           "reads each gradient and adds it, as in Megatron-LM of 2021",
           {.formerly = "mesh.gradient_accumulation_fusion"});
  add_flag(training, "router_fusion", &Recipe::router_fusion,
           "the choice of experts and the balancing loss are a kernel each; otherwise PyTorch's kernels, one after "
           "another (Megatron-LM's `moe_router_fusion`)",
           {.see = "host-time"});
  add_flag(training, "activation_fusion", &Recipe::activation_fusion,
           "the activation of an MLP or of experts is one kernel, with the router's probabilities; `false`: those of "
           "PyTorch, one after another, and the product with the probabilities in fp32 (Megatron-Core's "
           "`bias_activation_fusion`)",
           {.see = "experts"});
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
  add_flag(training, "whole_parameters", &Recipe::whole_parameters,
           "level 1 of `zero`: each rank updates whole parameters: gradients are all-reduced, and the ranks broadcast "
           "what they have updated, one after another (InternEvo, PyTorch's `ZeroRedundancyOptimizer`); `false`: "
           "an equal part of all parameters, with a reduce-scatter and an all-gather",
           {});
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
    add_parts(training);
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
