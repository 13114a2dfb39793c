#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/import/impl/config_format.h"
#include "sim/import/impl/trainer_arguments.h"

namespace hdpsim {
namespace {

constexpr auto axolotl_stated = std::to_array<PlainKeys>({
    {"",
     "base_model sequence_len micro_batch_size batch_size gradient_accumulation_steps sample_packing "
     "sample_packing_sequentially pad_to_sequence_len optimizer bf16 fp16 bfloat16 float16 adapter lora_r "
     "lora_dropout lora_target_modules lora_target_linear load_in_4bit load_in_8bit gradient_checkpointing "
     "gradient_checkpointing_kwargs.use_reentrant activation_offloading deepspeed fsdp fsdp_version fsdp_config.* "
     "flash_attention sdp_attention eager_attention flex_attention xformers_attention attn_implementation "
     "context_parallel_size sequence_parallel_degree tensor_parallel_size dp_shard_size dp_replicate_size "
     "ring_attn_func torch_compile liger_fused_linear_cross_entropy liger_rms_norm liger_rope liger_glu_activation "
     "liger_swiglu cut_cross_entropy plugins rl heads_k_stride "
     "sample_packing_bin_size sample_packing_group_size"},
});
constexpr auto axolotl_idle = std::to_array<PlainKeys>({
    {"",
     "base_model_* model_type model_revision revision_of_model tokenizer_* is_*_derived_model trust_remote_code "
     "processor_type datasets test_datasets dataset_* shuffle_merged_datasets skip_prepare_dataset val_set_size "
     "output_dir wandb_* mlflow_* comet_* use_comet swanlab_* use_swanlab trackio_* use_trackio use_wandb use_mlflow "
     "use_tensorboard learning_rate lr_* cosine_* warmup_* weight_decay adam_* optim_args max_grad_norm num_epochs "
     "max_steps evals_per_epoch eval_* evaluation_strategy saves_per_epoch save_* logging_steps loss_watchdog_* "
     "special_tokens tokens added_tokens_overrides eot_tokens chat_template* default_system_message train_on_* seed "
     "strict debug resume_from_checkpoint auto_resume_from_checkpoints local_rank early_stopping_patience "
     "hub_* push_* hf_use_auth_token lora_alpha lora_model_dir lora_modules_to_save lora_fan_in_fan_out "
     "lora_on_cpu peft_* ddp ddp_timeout ddp_find_unused_parameters gptq* tf32 remove_unused_columns "
     "total_num_tokens resize_token_embeddings_to_32x noisy_embedding_alpha neftune_noise_alpha "
     "low_cpu_mem_usage torchdistx_path experimental_skip_move_to_device dataloader_* min_sample_len "
     "excess_length_strategy "
     "overrides_of_model_config.rope_* device_map gpu gpu_count secrets volumes profiler_* include_tokens_per_second "
     "field_messages model_config.output_router_logits use_ray ray_* sequence_len_overflow_handling "
     "liger_layer_norm reward_model dpo_* simpo_gamma orpo_alpha kto_* trl.beta "
     "loraplus_* peft_use_rslora eval_sample_packing num_labels project_name use_otel_metrics otel_* include_tkps "
     "streaming streaming_multipack_buffer_size pretraining_dataset timeout_preprocess max_packed_sequence_len "
     "gc_steps curriculum_sampling lisa_step_interval torch_dtype fix_untrained_tokens bnb_config_kwargs"},
});
constexpr std::string_view torch_kernels = "kernels are those of transformers";
constexpr auto axolotl_unmodelled = std::to_array<KeyRule>({
    unmodelled_key("", "lora_mlp_kernel", torch_kernels, effects::faster_and_smaller, "false"),
    unmodelled_key("", "lora_qkv_kernel", torch_kernels, effects::faster_and_smaller, "false"),
    unmodelled_key("", "lora_o_kernel", torch_kernels, effects::faster_and_smaller, "false"),
    unmodelled_key("", "flash_attn_fuse_mlp", torch_kernels, effects::faster, "false"),
    unmodelled_key("", "flash_attn_fuse_qkv", torch_kernels, effects::faster, "false"),
    unmodelled_key("", "flash_attn_rms_norm", torch_kernels, effects::faster, "false"),
    unmodelled_key("", "flash_attn_cross_entropy", "the loss is PyTorch's", effects::faster_and_smaller, "false"),
    unmodelled_key("", "use_kernels", torch_kernels, effects::faster, "false"),
    unmodelled_key("", "use_scattermoe", torch_kernels, effects::faster, "false"),
    unmodelled_key("", "use_sonicmoe", torch_kernels, effects::faster, "false"),
    unmodelled_key("", "experts_implementation", torch_kernels, effects::other_time),
    unmodelled_key("", "group_by_length", "sequences are all as long as stated", effects::faster, "false"),
    unmodelled_key("", "expert_parallel_size", "no rank has experts of its own", effects::other_both, "1"),
    unmodelled_key("", "lora_target_parameters", "experts have no adapters", effects::slower_and_larger),
    unmodelled_key("", "liger_cross_entropy", "the loss is PyTorch's", effects::faster_and_smaller, "false"),
    unmodelled_key("", "tiled_mlp", "an MLP takes all tokens at once", effects::smaller, "false"),
    unmodelled_key("", "chunked_cross_entropy", "the loss is computed on all logits at once", effects::smaller,
                   "false"),
    unmodelled_key("", "unfrozen_parameters", "all parameters are trained", effects::faster_and_smaller),
    unmodelled_key("", "freeze_mm_modules", "the encoder of pictures and its tokens are not simulated",
                   effects::slower_and_larger),
    unmodelled_key("", "qat", "products are those of bf16", effects::slower),
    unmodelled_key("", "fp8", "products are in bf16", effects::faster, "false"),
    unmodelled_key("", "quantize_moe_experts", "frozen experts have the type that the other keys say", effects::smaller,
                   "false"),
    unmodelled_key("", "relora_steps", "adapters stay what they are", effects::slower),
    unmodelled_key("", "model_config", "the model is built as its configuration says", effects::other_both),
    unmodelled_key("", "s2_attention", "tokens see all those before them", effects::faster, "false"),
    unmodelled_key("", "trl.*", "the training of the actor alone is simulated", effects::slower_and_larger),
    unmodelled_key("", "vllm.*", "the training of the actor alone is simulated", effects::slower_and_larger),
    unmodelled_key("", "reinit_weights", "the model is built as its configuration says", effects::other_both),
    unmodelled_key("", "diffusion.*", "tokens see all those before them", effects::other_time),
    unmodelled_key("", "torch_compile_backend", "layers are what the default backend makes of them", effects::slower,
                   "inductor"),
});

const RuleTable& table_of_axolotl() {
  static const RuleTable table(axolotl_unmodelled, axolotl_stated, axolotl_idle);
  return table;
}

const KeyRule* rule_of_axolotl(std::string_view path) {
  const RuleTable& table = table_of_axolotl();
  if (path.starts_with("fsdp_config.")) return fsdp_rule(path.substr(path.find('.') + 1));
  if (path.starts_with("deepspeed.")) return deepspeed_rule(path.substr(path.find('.') + 1));
  if (path == "trl" || path == "vllm" || path == "fsdp_config") return nullptr;
  return table.find(path);
}

void take_adapters_of_axolotl(ConfigKeys& keys, TrainerRun& run) {
  const Value* kind = keys.at("adapter");
  if (kind == nullptr) return;
  const std::string word = keys.word(kind, "");
  Adapters adapters;
  adapters.rank = keys.number(keys.at("lora_r"), "lora_r", trainer_ranges::degree, 8);
  const bool has_all = keys.truth(keys.at("lora_target_linear"));
  if (!has_all) adapters.targets = targets_of_adapters(keys, keys.at("lora_target_modules"));
  const std::string dropout = keys.word(keys.at("lora_dropout"), "0");
  adapters.has_dropout = dropout != "0" && dropout != "0.0";
  if (keys.truth(keys.at("load_in_4bit"))) adapters.base = "nf4_double";
  if (keys.truth(keys.at("load_in_8bit"))) {
    keys.unmodelled("load_in_8bit", keys.at("load_in_8bit"), "frozen weights are bf16", effects::slower_but_smaller);
  }
  if (word != "lora" && word != "qlora") {
    keys.unmodelled(fmt::format("adapter = {}", word), kind, "adapters are those of LoRA", effects::other_both);
  }
  run.adapters = adapters;
  run.made.places.emplace("training.lora", kind->position);
}

void take_packing_of_axolotl(ConfigKeys& keys, TrainerRun& run) {
  const Value* packing = keys.at("sample_packing");
  if (!keys.truth(packing)) return;
  const bool in_order = keys.truth(keys.at("sample_packing_sequentially"));
  take_packing(run, in_order ? "axolotl_sequential" : "axolotl", packing);
}

void take_degrees_of_axolotl(ConfigKeys& keys, TrainerRun& run) {
  take_number(keys, {"context_parallel_size", "sequence_parallel_degree"}, trainer_ranges::degree, run.cp);
  take_number(keys, {"tensor_parallel_size"}, trainer_ranges::degree, run.tp);
  const std::string way =
      keys.word(keys.at("ring_attn_func"), keys.truth(keys.at("sample_packing")) ? "varlen_llama3" : "batch_ring");
  run.cp_comm_type = way == "varlen_llama3" ? "all_gather" : "p2p";
  const Value* shards = keys.at("dp_shard_size");
  const Value* copies = keys.at("dp_replicate_size");
  const std::int64_t replicas = keys.number(copies, "dp_replicate_size", trainer_ranges::degree, 1);
  if (shards == nullptr) return;
  const std::int64_t ranks = keys.number(shards, "dp_shard_size", trainer_ranges::degree, 1) * run.cp.value_or(1);
  run.gpus.set(bounded_product({ranks, replicas, run.tp.value_or(1)}), shards->position);
  if (run.sharding.value && replicas > 1) run.sharding.value->shard_ranks = ranks;
}

// Plugins of Liger and of CutCrossEntropy change nothing by themselves, but that the latter is on unless it is off.
void take_losses_of_axolotl(ConfigKeys& keys, TrainerRun& run) {
  const Value* liger = keys.at({"liger_rms_norm", "liger_rope", "liger_glu_activation", "liger_swiglu"});
  if (keys.truth(liger)) {
    take_liger(keys, liger, run);
    run.loss = "pytorch";
  }
  if (keys.truth(keys.at("liger_fused_linear_cross_entropy"))) run.loss = "liger";
  const Value* plugins = keys.at("plugins");
  bool cuts = keys.truth(keys.at("cut_cross_entropy"));
  for (const Value& plugin : plugins == nullptr ? std::vector<Value>() : plugins->items) {
    const bool is_cut = plugin.text.find("cut_cross_entropy") != std::string::npos;
    const bool is_known = is_cut || plugin.text.find("liger") != std::string::npos;
    if (is_cut) cuts = keys.truth(keys.at("cut_cross_entropy"), true);
    if (!is_known) {
      keys.unmodelled(fmt::format("the plugin {}", plugin.text), &plugin, "it is not simulated", effects::other_both);
    }
  }
  if (cuts) run.loss = "cut";
}

void take_kernels_of_axolotl(ConfigKeys& keys, TrainerRun& run) {
  take_attention(keys, keys.at("attn_implementation"), run);
  if (keys.truth(keys.at("eager_attention"))) put(run.made.kernels, "attention", std::string("unfused"));
  if (keys.truth(keys.at("flex_attention"))) {
    keys.unmodelled("flex_attention", keys.at("flex_attention"), "attention is the flash kernel", effects::slower);
  }
  const Value* compiles = keys.at("torch_compile");
  if (compiles != nullptr && compiles->text != "auto" && keys.truth(compiles)) run.is_compiled = true;
  take_losses_of_axolotl(keys, run);
}

void take_checkpointing_of_axolotl(ConfigKeys& keys, TrainerRun& run) {
  const Value* at = keys.at("gradient_checkpointing");
  const std::string word = keys.word(at, "false");
  if (word.find("offload") == std::string::npos) {
    take_checkpointing(keys, run, false);
  } else {
    run.recomputes = true;
  }
  const Value* offloads = word.find("offload") != std::string::npos ? at : keys.at("activation_offloading");
  if (offloads != nullptr && offloads->text != "false") {
    keys.unmodelled("activation_offloading", offloads, "what layers begin with stays on the device",
                    effects::slower_but_smaller);
  }
}

// `batch_size` is that of a rank in a step, where no accumulation is stated.
void take_whole_batch(ConfigKeys& keys, TrainerRun& run) {
  const Value* whole = keys.at("batch_size");
  if (whole == nullptr || run.accumulation.value) return;
  const std::int64_t sequences = keys.number(whole, "batch_size", trainer_ranges::sequences, 1);
  run.accumulation.set(std::max<std::int64_t>(sequences / run.micro_batch.value_or(1), 1), whole->position);
}

void read_axolotl(ConfigKeys& keys, TrainerRun& run) {
  const Value* name = keys.at("base_model");
  if (name != nullptr) run.model.set(keys.word(name, ""), name->position);
  take_number(keys, {"sequence_len"}, trainer_ranges::tokens, run.sequence);
  take_number(keys, {"micro_batch_size"}, trainer_ranges::sequences, run.micro_batch);
  take_number(keys, {"gradient_accumulation_steps"}, trainer_ranges::sequences, run.accumulation);
  take_whole_batch(keys, run);
  for (const char* type : {"bf16", "fp16", "bfloat16", "float16"}) take_precision(keys, keys.at(type), run);
  run.states = TrainerRun::States::bf16;
  take_optimizer(keys, keys.at("optimizer"), run);
  const Value* fsdp = keys.at("fsdp");
  const Value* config = keys.at("fsdp_config");
  if (fsdp != nullptr && fsdp->is_sequence() && fsdp->items.empty()) fsdp = nullptr;
  if (fsdp != nullptr || (config != nullptr && config->is_map() && !config->entries.empty())) {
    take_fsdp(keys, "fsdp_config", nullptr, fsdp != nullptr ? fsdp : config, run);
  }
  const Value* deepspeed = keys.at("deepspeed");
  if (deepspeed != nullptr && deepspeed->is_map()) take_deepspeed(keys, "deepspeed", run);
  take_degrees_of_axolotl(keys, run);
  take_checkpointing_of_axolotl(keys, run);
  take_kernels_of_axolotl(keys, run);
  take_adapters_of_axolotl(keys, run);
  take_packing_of_axolotl(keys, run);
  const Value* rl = keys.at("rl");
  if (rl != nullptr) take_stage(keys, run, keys.word(rl, ""), rl);
}

}  // namespace

const ConfigFormat& axolotl_format() {
  static constexpr ConfigFormat format{.name = "axolotl",
                                       .rule_of = rule_of_axolotl,
                                       .table = table_of_axolotl,
                                       .read = read_axolotl,
                                       .files_named = "deepspeed"};
  return format;
}

}  // namespace hdpsim
