#include <fmt/format.h>

#include <array>

#include "sim/import/impl/config_format.h"
#include "sim/import/impl/trainer_arguments.h"

namespace hdpsim {
namespace {

constexpr auto trainer_stated = std::to_array<PlainKeys>({
    {"",
     "model_name_or_path per_device_train_batch_size gradient_accumulation_steps "
     "gradient_checkpointing gradient_checkpointing_kwargs.use_reentrant bf16 fp16 optim deepspeed fsdp fsdp_config.* "
     "torch_compile use_liger_kernel packing packing_strategy max_length max_seq_length block_size model_max_length "
     "attn_implementation dtype torch_dtype use_peft lora_r lora_target_modules lora_dropout load_in_4bit "
     "use_bnb_nested_quant padding_free num_processes config config_file per_gpu_train_batch_size loss_type "
     "zero_stage max_seq_len offload max_prompt_length max_completion_length"},
});

// Data, the schedule of learning rates, what is written and reported, and what decides the gradients' values alone.
constexpr auto trainer_idle = std::to_array<PlainKeys>({
    {"",
     "save_* eval_* evaluation_strategy do_* logging_* log_* report_to push_to_hub* hub_* dataloader_* dataset_* "
     "datasets data_* train_file* validation_* lr_* learning_rate min_lr* warmup_* weight_decay adam_* max_grad_norm "
     "num_train_epochs max_steps seed data_seed run_name output_dir overwrite_output_dir overwrite_cache project "
     "trackio_* tokenizer_* use_fast_tokenizer trust_remote_code model_revision cache_dir token use_auth_token "
     "ddp_timeout ddp_find_unused_parameters ddp_broadcast_buffers local_rank disable_tqdm remove_unused_columns "
     "label_names load_best_model_at_end metric_for_best_model greater_is_better ignore_data_skip "
     "resume_from_checkpoint "
     "length_column_name skip_memory_metrics include_* prediction_loss_only per_device_eval_batch_size use_cache "
     "preprocessing_num_workers max_train_samples max_eval_samples max_samples streaming chat_template* system_prompt "
     "dataset shuffle_dataset eos_token pad_token assistant_only_loss completion_only_loss truncation_mode "
     "lora_alpha lora_task_type use_rslora use_dora lora_modules_to_save label_smoothing_factor neftune_noise_alpha "
     "router_aux_loss_coef output_router_logits low_cpu_mem_usage ddp_backend tf32 torch_dtype_kwargs jit_mode_eval "
     "average_tokens_across_devices accelerator_config* restore_callback_states_from_checkpoint bf16_full_eval "
     "fp16_full_eval beta reward_* temperature num_generations "
     "script_args callbacks wandb_* benchmarks system num_machines machine_rank main_process_* use_vllm vllm_* "
     "ignore_bias_buffers precompute_ref_log_probs preprocess_* bnb_4bit_quant_* "
     "bnb_4bit_compute_dtype fsdp_transformer_layer_cls_to_wrap model_init_kwargs.torch_dtype config_name model_type "
     "hf_*"},
});

constexpr std::string_view as_long_as_stated = "sequences are all as long as stated";
constexpr auto trainer_unmodelled = std::to_array<KeyRule>({
    unmodelled_key("", "group_by_length", as_long_as_stated, effects::faster, "false"),
    unmodelled_key("", "auto_find_batch_size", "micro-batches are as large as stated", effects::other_both, "false"),
    unmodelled_key("", "parallelism_config.*", "sequences and layers are divided as Accelerate's own file says",
                   effects::other_both),
    unmodelled_key("", "full_determinism", "kernels are the fast ones", effects::slower, "false"),
    unmodelled_key("", "torch_empty_cache_steps", "the allocator keeps what it has", effects::slower_but_smaller),
    unmodelled_key("", "activation_offloading", "activations stay on the device; a plan's offload is something else",
                   effects::slower_but_smaller, "false"),
    unmodelled_key("", "ddp_bucket_cap_mb", "gradients are reduced in buckets of 25 MiB", effects::other_time, "25"),
    unmodelled_key("", "torch_compile_mode", "layers are what torch.compile makes of them by default",
                   effects::other_both, "default"),
    unmodelled_key("", "torch_compile_backend", "layers are what the default backend makes of them", effects::slower,
                   "inductor"),
    unmodelled_key("", "fp16_opt_level", "parameters have the types of mixed precision", effects::other_memory, "O1"),
    unmodelled_key("", "use_cpu", "a device computes", effects::slower, "false"),
    unmodelled_key("", "use_ipex", "a device computes", effects::slower, "false"),
    unmodelled_key("", "no_cuda", "a device computes", effects::slower, "false"),
    unmodelled_key("", "load_in_8bit", "frozen weights are bf16", effects::slower_but_smaller, "false"),
    unmodelled_key("", "use_unsloth", "kernels are those of transformers", effects::faster_and_smaller, "false"),
    unmodelled_key("", "model_init_kwargs", "the model is built as its configuration says", effects::other_both),
    unmodelled_key("", "optim_target_modules", "the optimizer updates all that is trained", effects::other_both),
    unmodelled_key("", "optim_args", "the optimizer is that of its name", effects::other_both),
    unmodelled_key("", "freeze_*", "all parameters are trained", effects::faster_and_smaller, "false"),
    unmodelled_key("", "experts_implementation", "experts are grouped products", effects::other_time, "grouped_mm"),
});

const RuleTable& table_of_trainer() {
  static const RuleTable table(trainer_unmodelled, trainer_stated, trainer_idle);
  return table;
}

const KeyRule* rule_of_trainer(std::string_view path) {
  const RuleTable& table = table_of_trainer();
  if (path.starts_with("fsdp_config.")) return fsdp_rule(path.substr(path.find('.') + 1));
  if (path.starts_with("deepspeed.")) return deepspeed_rule(path.substr(path.find('.') + 1));
  return table.find(path);
}

void take_adapters_of_trl(ConfigKeys& keys, TrainerRun& run) {
  const bool in_4_bits = keys.truth(keys.at("load_in_4bit"));
  if (!keys.truth(keys.at("use_peft")) && keys.at("lora_r") == nullptr) return;
  Adapters adapters;
  adapters.rank = keys.number(keys.at("lora_r"), "lora_r", trainer_ranges::degree, 16);
  const Value* targets = keys.at("lora_target_modules");
  adapters.targets = targets_of_adapters(keys, targets);
  if (targets == nullptr) {
    adapters.targets = {"q_proj", "v_proj"};
    keys.assume("adapters are those of q_proj and v_proj, PEFT's default for models like Llama");
  }
  const std::string dropout = keys.word(keys.at("lora_dropout"), "0.05");
  adapters.has_dropout = dropout != "0" && dropout != "0.0";
  if (in_4_bits) adapters.base = keys.truth(keys.at("use_bnb_nested_quant")) ? "nf4_double" : "nf4";
  run.adapters = adapters;
}

// `packing_strategy: wrapped` cuts sequences wherever a pack is full.
void take_packing_of_trl(ConfigKeys& keys, TrainerRun& run) {
  const Value* packing = keys.at("packing");
  if (!keys.truth(packing)) return;
  const std::string strategy = keys.word(keys.at("packing_strategy"), "bfd");
  if (strategy.starts_with("bfd")) return take_packing(run, "trl", packing);
  keys.unmodelled(fmt::format("packing_strategy = {}", strategy), keys.at("packing_strategy"),
                  "sequences are not cut to fill packs", effects::other_time);
}

// DeepSpeed's own examples state the stage, and whether the host has what is sharded, among the arguments.
void take_stage_of_zero(ConfigKeys& keys, TrainerRun& run) {
  const Value* stage = keys.at("zero_stage");
  if (stage == nullptr) return;
  Sharding sharding{.backend = Sharding::Backend::deepspeed, .zero = keys.number(stage, "zero_stage", {0, 3}, 0)};
  sharding.offloads_optimizer = keys.truth(keys.at("offload"));
  sharding.offloads_parameters = sharding.offloads_optimizer && sharding.zero == 3;
  run.sharding.set(sharding, stage->position);
}

void read_training_arguments(ConfigKeys& keys, TrainerRun& run) {
  const Value* name = keys.at("model_name_or_path");
  if (name != nullptr) run.model.set(keys.word(name, ""), name->position);
  take_answers(keys, "max_prompt_length", run);
  take_number(keys, {"max_length", "max_seq_length", "max_seq_len", "block_size", "model_max_length"},
              trainer_ranges::tokens, run.sequence);
  run.usual_micro_batch = 8;
  take_stage_of_zero(keys, run);
  take_trainer_arguments(keys, run);
  take_checkpointing(keys, run, false);
  take_adapters_of_trl(keys, run);
  take_packing_of_trl(keys, run);
  take_stage(keys, run, run.program, nullptr);
}

}  // namespace

const KeyRule* trainer_argument_rule(std::string_view path) {
  return rule_of_trainer(path);
}

const ConfigFormat& training_arguments_format() {
  static constexpr ConfigFormat format{.name = "HuggingFace's TrainingArguments",
                                       .rule_of = rule_of_trainer,
                                       .table = table_of_trainer,
                                       .read = read_training_arguments,
                                       .files_named = "deepspeed config config_file fsdp_config"};
  return format;
}

void take_checkpointing(ConfigKeys& keys, TrainerRun& run, bool otherwise) {
  const Value* at = keys.at("gradient_checkpointing");
  if (at != nullptr) run.made.places.emplace("training.recompute", at->position);
  run.recomputes = run.recomputes || keys.truth(at, otherwise);
  const Value* reentrant = keys.at("gradient_checkpointing_kwargs.use_reentrant");
  if (reentrant != nullptr) run.is_reentrant = keys.truth(reentrant);
}

void take_trainer_arguments(ConfigKeys& keys, TrainerRun& run) {
  take_number(keys, {"per_device_train_batch_size", "per_gpu_train_batch_size"}, trainer_ranges::sequences,
              run.micro_batch);
  take_number(keys, {"gradient_accumulation_steps"}, trainer_ranges::sequences, run.accumulation);
  take_number(keys, {"num_processes"}, trainer_ranges::gpus, run.gpus);
  for (const char* type : {"bf16", "fp16"}) take_precision(keys, keys.at(type), run);
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (keys.word(keys.at(key), "") == "bfloat16") run.states = TrainerRun::States::bf16;
  }
  take_optimizer(keys, keys.at("optim"), run);
  take_attention(keys, keys.at("attn_implementation"), run);
  if (keys.truth(keys.at("torch_compile"))) run.is_compiled = true;
  if (keys.truth(keys.at("use_liger_kernel"))) take_liger(keys, keys.at("use_liger_kernel"), run);
  if (keys.word(keys.at("loss_type"), "") == "chunked_nll") run.loss = "checkpointed";
  const Value* fsdp = keys.at("fsdp");
  if (fsdp != nullptr && fsdp->is_sequence() && fsdp->items.empty()) fsdp = nullptr;
  const Value* of_fsdp = keys.at("fsdp_config");
  if (fsdp != nullptr && !(fsdp->is_scalar() && (fsdp->text == "false" || fsdp->text == "False")))
    take_fsdp(keys, "fsdp_config", fsdp, fsdp, run);
  if (fsdp == nullptr && of_fsdp != nullptr && of_fsdp->is_map()) take_fsdp(keys, "fsdp_config", nullptr, of_fsdp, run);
  const Value* deepspeed = keys.at("deepspeed");
  if (deepspeed != nullptr && deepspeed->is_map()) take_deepspeed(keys, "deepspeed", run);
}

}  // namespace hdpsim
