#include <algorithm>
#include <array>

#include "sim/import/impl/key_rules.h"
#include "sim/import/impl/megatron_dialects.h"

namespace hdpsim {
namespace {

/// A key of NeMo's, and the argument of Megatron-LM that says the same.
struct NemoKey {
  std::string_view path;
  std::string_view argument;
};
constexpr auto nemo_keys = std::to_array<NemoKey>({
    {"trainer.devices", "nproc_per_node"},
    {"trainer.num_nodes", "nnodes"},
    {"model.encoder_seq_length", "seq_length"},
    {"model.rotary_percentage", "rotary_percent"},
    {"model.layernorm_epsilon", "norm_epsilon"},
    {"model.activations_checkpoint_granularity", "recompute_granularity"},
    {"model.activations_checkpoint_method", "recompute_method"},
    {"model.activations_checkpoint_num_layers", "recompute_num_layers"},
    {"model.ub_tp_comm_overlap", "tp_comm_overlap"},
    {"model.moe_router_topk", "moe_router_topk"},
    {"model.use_flash_attention", "use_flash_attn"},
    {"model.optim.overlap_grad_sync", "overlap_grad_reduce"},
    {"model.optim.overlap_param_sync", "overlap_param_gather"},
    {"model.optim.lr", "lr"},
    {"model.optim.weight_decay", "weight_decay"},
});

// Keys of `model` that are arguments of the same name.
constexpr std::string_view same_names =
    "micro_batch_size global_batch_size rampup_batch_size tensor_model_parallel_size pipeline_model_parallel_size "
    "virtual_pipeline_model_parallel_size context_parallel_size expert_model_parallel_size max_position_embeddings "
    "num_layers hidden_size ffn_hidden_size num_attention_heads num_query_groups kv_channels hidden_dropout "
    "attention_dropout position_embedding_type make_vocab_size_divisible_by sequence_parallel overlap_p2p_comm "
    "gradient_accumulation_fusion bias_activation_fusion masked_softmax_fusion apply_rope_fusion num_moe_experts "
    "seq_len_interpolation_factor seed fp8_margin fp8_amax_history_len fp8_amax_compute_algo "
    "apply_query_key_layer_scaling init_method_std use_cpu_initialization cpu_offloading_num_layers";

// What sets neither the time of a step nor its memory, by the beginning of its path.
constexpr std::string_view nemo_idle =
    "name defaults trainer. exp_manager. s3_checkpointing. run. hydra. cluster_type model.data. model.tokenizer. "
    "model.nsys_profile. model.optim. model.dist_ckpt model.native_amp model.hysteresis model.resume_from_checkpoint "
    "model.restore_from model.mcore_gpt model.pre_process model.post_process model.use_scaled_init_method "
    "model.persist_layer_norm model.do_layer_norm_weight_decay model.reset_lr model.onnx_safe model.apex_ "
    "model.enable_megatron_timers model.megatron_timer_kwargs model.fp8_interval model.reduce_amax "
    "model.transformer_block_type model.normalize_attention_scores model.attention_type model.openai_gelu "
    "model.headscale model.sync_batch_comm model.nccl_communicator model.get_attention_mask_from_fusion "
    "model.drop_layers model.skip_train model.sharp model.memory_profile model.gc_interval model.name "
    "model.megatron_amp_O2 model.transformer_engine model.gradient_as_bucket_view model.grad_div_ar_fusion "
    "model.bias_dropout_add_fusion model.batch_p2p_comm model.scale_positional_embedding model.fp8_e4m3 "
    "model.fp8_hybrid model.use_emha model.activation model.normalization model.bias model.share_embeddings "
    "model.cpu_offloading_ model.validation_ model.fp16_lm_cross_entropy model.fp32_residual_connection "
    "model.ub_tp_comm_overlap_cfg model.precision model.target model.rotary_base model.global_batch model.ffn_dropout";

class NemoArguments {
 public:
  explicit NemoArguments(const Value& root) : root_(root) {}

  ArgumentList take() {
    take_map(root_, "");
    take_model();
    return std::move(list_);
  }

 private:
  [[nodiscard]] const Value* at(std::string_view path) const {
    const Value* value = &root_;
    for (std::size_t begin = 0; value != nullptr && begin <= path.size();) {
      const std::size_t end = std::min(path.find('.', begin), path.size());
      value = value->find(path.substr(begin, end - begin));
      begin = end + 1;
    }
    return value == nullptr || value->is_null() || value->text == "null" ? nullptr : value;
  }

  [[nodiscard]] std::string word(std::string_view path) const {
    const Value* value = at(path);
    return value == nullptr ? std::string() : value->text;
  }
  [[nodiscard]] bool is_on(std::string_view path) const { return word(path) == "true" || word(path) == "True"; }

  // `${model.KEY}`, `${.KEY}`: what that key says; others stay as they are, and not known.
  [[nodiscard]] ArgumentValue resolved(const Value& value) const {
    std::string text = value.text;
    for (int i = 0; i < 4 && text.starts_with("${") && text.ends_with('}'); ++i) {
      std::string path = text.substr(2, text.size() - 3);
      if (path.starts_with('.')) path.insert(0, "model");
      const Value* other = at(path);
      if (other == nullptr || !other->is_scalar()) break;
      text = other->text;
    }
    const bool is_open = text.starts_with("${") || text == "???";
    return {is_open ? std::string() : text, value.position, is_open ? text : std::string()};
  }

  void add(std::string_view name, const Value& value) {
    Argument argument{.written = std::string(name), .position = value.position, .values = {}};
    argument.is_launcher = name == "nproc_per_node" || name == "nnodes";
    const bool is_truth = value.is_scalar() && !value.quoted;
    if (is_truth && (value.text == "true" || value.text == "True" || value.text == "false" || value.text == "False")) {
      argument.is_switch = true;
      argument.is_on = value.text == "true" || value.text == "True";
    } else if (value.is_scalar()) {
      argument.values.push_back(resolved(value));
    }
    for (const Value& item : value.items) argument.values.push_back(resolved(item));
    list_.arguments.push_back(std::move(argument));
  }

  void turn(std::string_view name, bool on, std::string_view by) {
    const Value* stated = at(by);
    Argument argument{
        .written = std::string(name), .position = stated == nullptr ? Position{} : stated->position, .values = {}};
    argument.is_switch = true;
    argument.is_on = on;
    list_.arguments.push_back(std::move(argument));
  }

  void say(std::string_view name, std::string_view value, std::string_view by) {
    const Value* stated = at(by);
    add(name, Value::scalar(std::string(value), stated == nullptr ? Position{} : stated->position));
  }

  void take_map(const Value& map, const std::string& path) {
    for (const Value::Entry& entry : map.entries) {
      const std::string name = path.empty() ? entry.key : path + "." + entry.key;
      if (entry.value.is_map() && (holds_known(name) || !is_idle(name + "."))) {
        take_map(entry.value, name);
      } else {
        take_key(name, entry);
      }
    }
  }

  void take_key(const std::string& path, const Value::Entry& entry) {
    if (entry.value.is_null() || entry.value.text == "null") return;
    const auto known =
        std::find_if(nemo_keys.begin(), nemo_keys.end(), [&](const NemoKey& key) { return key.path == path; });
    if (known != nemo_keys.end()) return add(known->argument, entry.value);
    const auto same = words_in(same_names);
    const bool is_same =
        path.starts_with("model.") && std::find(same.begin(), same.end(), path.substr(6)) != same.end();
    if (is_same && path != "model.cpu_offloading_num_layers") return add(path.substr(6), entry.value);
    if (is_same) return is_on("model.cpu_offloading") ? add(path.substr(6), entry.value) : void();
    const bool says_nothing = entry.value.is_scalar() && (entry.value.text == "false" || entry.value.text == "False");
    if (is_idle(path) || says_nothing) {
      list_.notes.push_back({ImportNote::Kind::ignored, entry.position, path});
    } else {
      const NameHint* hint = hint_of_name(path);
      list_.notes.push_back({ImportNote::Kind::unknown, entry.position,
                             hint == nullptr ? path : difference_text(path, hint->follows, hint->effect)});
    }
  }

  static bool holds_known(const std::string& table) {
    return std::any_of(nemo_keys.begin(), nemo_keys.end(),
                       [&](const NemoKey& key) { return key.path.starts_with(table + "."); });
  }

  static bool is_idle(const std::string& path) {
    const auto idle = words_in(nemo_idle);
    return std::any_of(idle.begin(), idle.end(), [&](std::string_view begin) { return path.starts_with(begin); });
  }

  // What takes other words.
  void take_model() {
    const std::string precision = word("trainer.precision");
    if (precision.find("bf16") != std::string::npos) turn("bf16", true, "trainer.precision");
    if (precision.find("16") != std::string::npos && precision.find("bf") == std::string::npos) {
      turn("fp16", true, "trainer.precision");
    }
    const std::string activation = word("model.activation");
    if (activation.find("swiglu") != std::string::npos) turn("swiglu", true, "model.activation");
    if (activation == "squared-relu") turn("squared_relu", true, "model.activation");
    if (activation.find("geglu") != std::string::npos || activation == "reglu") {
      turn("gated_linear_unit", true, "model.activation");
    }
    const std::string norm = word("model.normalization");
    if (norm == "rmsnorm") say("normalization", "RMSNorm", "model.normalization");
    if (at("model.bias") != nullptr) turn("add_bias_linear", is_on("model.bias"), "model.bias");
    const char* shares = "model.share_embeddings_and_output_weights";
    if (at(shares) != nullptr && !is_on(shares)) turn("untie_embeddings_and_output_weights", true, shares);
    if (word("model.optim.name").find("distributed") != std::string::npos) {
      turn("use_distributed_optimizer", true, "model.optim.name");
    }
    if (word("model.optim.grad_sync_dtype").find("bf16") != std::string::npos) {
      turn("grad_reduce_in_bf16", true, "model.optim.grad_sync_dtype");
    }
    if (is_on("model.fp8")) say("fp8", "hybrid", "model.fp8");
    if (at("model.num_query_groups") != nullptr) turn("group_query_attention", true, "model.num_query_groups");
    list_.notes.push_back(
        {ImportNote::Kind::assumed, {}, "NeMo's keys are taken as the arguments of Megatron-LM that say the same"});
  }

  const Value& root_;
  ArgumentList list_;
};

}  // namespace

bool is_nemo_configuration(const Value& root) {
  const Value* model = root.find("model");
  return root.find("trainer") != nullptr && model != nullptr && model->find("num_layers") != nullptr &&
         model->find("micro_batch_size") != nullptr;
}

ArgumentList arguments_of_nemo(const Value& root) {
  return NemoArguments(root).take();
}

}  // namespace hdpsim
