#include "sim/import/impl/megatron_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/text.h"

namespace hdpsim {
namespace {

using namespace megatron_ranges;

// Which layers have a property: all of those of a period, or each as a list says.
using LayerMarks = std::vector<bool>;

class ModelReader {
 public:
  ModelReader(const MegatronArguments& arguments, std::int64_t tp, std::optional<std::int64_t> entries)
      : arguments_(arguments), widths_(megatron_widths(arguments, tp, entries)) {}

  Value read() {
    config_.position = {arguments_.file(), 0, 0};
    read_traits();
    if (widths_.layers == 0 || widths_.hidden == 0 || widths_.heads == 0) return config_;
    if (widths_.letters) {
      hybrid();
    } else if (has_experts(arguments_) || is_latent_) {
      experts();
    } else if (widths_.is_gated) {
      gated();
    } else {
      plain();
    }
    if (!widths_.letters && variant_ == AttentionVariant::none) read_window();
    if (const std::int64_t further = arguments_.number("mtp_num_layers", megatron_ranges::modules, 0);
        further > 0 && !widths_.letters) {
      set("num_nextn_predict_layers", further, "mtp_num_layers");
    }
    return std::move(config_);
  }

 private:
  // ---- What the arguments say

  void check_variant() {
    constexpr std::string_view argument = "experimental_attention_variant";
    if (variant_ == AttentionVariant::other) {
      no_family(argument, fmt::format("attention of kind '{}'", arguments_.word(argument, "")));
    }
    if (variant_ == AttentionVariant::indexer && !is_latent_) {
      no_family(argument, "an indexer of keys without latents", "add --multi-latent-attention");
    }
    if (variant_ == AttentionVariant::delta_nets && (is_latent_ || !widths_.is_gated || !has_qk_norm_)) {
      no_family(argument, "gated delta nets with attention without norms of queries and keys, or an MLP without a gate",
                "--qk-layernorm and --swiglu, if the model has them");
    }
    if (arguments_.is_on("attention_output_gate") && variant_ != AttentionVariant::delta_nets) {
      no_family("attention_output_gate", "a gate of attention's output without gated delta nets");
    }
    if (arguments_.has("moe_latent_size") && !widths_.letters) {
      no_family("moe_latent_size", "experts that work in a latent without Mamba layers");
    }
    const bool has_other_layers = widths_.letters || variant_ != AttentionVariant::none;
    if (has_other_layers && arguments_.has("window_size")) {
      no_family("window_size", "windows with layers that are no attention to all tokens");
    }
  }

  void read_traits() {
    is_latent_ = arguments_.is_on("multi_latent_attention");
    variant_ = attention_variant(arguments_);
    has_biases_ = arguments_.is_on("add_bias_linear");
    has_qkv_biases_ = has_biases_ || arguments_.is_on("add_qkv_bias");
    has_qk_norm_ = arguments_.is_on("qk_layernorm");
    check_variant();
    positions_ = arguments_.word("position_embedding_type", "learned_absolute");
    if (arguments_.is_on("use_rotary_position_embeddings")) positions_ = "rope";
    if (positions_ == "none") arguments_.assume("rotary positions are simulated, though there are none");
    if (positions_ == "mrope" || positions_ == "relative") {
      no_family("position_embedding_type", fmt::format("positions of kind '{}'", positions_));
    }
  }

  // ---- Families

  // No family with a gate has biases but those of queries, keys and values.
  void leave_out_biases() {
    if (!has_biases_) return;
    arguments_.note_unmodelled("add_bias_linear", "products of the MLP and of attention's output have no biases",
                               effects::slower_and_larger);
  }

  void gated() {
    leave_out_biases();
    if (positions_ == "learned_absolute") {
      return no_family("position_embedding_type", "a gated MLP with learned positions",
                       "--position-embedding-type rope, if they are rotary");
    }
    const bool has_nets = variant_ == AttentionVariant::delta_nets;
    const std::string family = has_nets          ? "Qwen3_5ForCausalLM"
                               : has_qk_norm_    ? "Qwen3ForCausalLM"
                               : has_qkv_biases_ ? "Qwen2ForCausalLM"
                                                 : "LlamaForCausalLM";
    begin(family);
    if (has_nets) delta_nets();
    if (has_qk_norm_) set_truth("attention_bias", has_qkv_biases_, "add_qkv_bias");
    set_widths(widths_.ffn, "ffn_hidden_size");
    finish();
  }

  // GPT-2 has learned positions, biases, and as many heads of keys as of queries; MPT, too, without these limits but
  // with an MLP of a multiple of the hidden size; StarCoder2 has rotary positions.
  void plain() {
    if (has_qk_norm_) return no_family("qk_layernorm", "norms of queries and keys with an MLP without a gate");
    if (has_qkv_biases_ && !has_biases_) {
      return no_family("add_qkv_bias", "biases of queries and keys alone, with an MLP without a gate");
    }
    if (positions_ != "learned_absolute") return starcoder();
    if (has_biases_ && widths_.kv_heads == widths_.heads) return gpt2();
    mpt();
  }

  void starcoder() {
    begin("Starcoder2ForCausalLM");
    set_widths(widths_.ffn, "ffn_hidden_size");
    set_truth("use_bias", has_biases_, "add_bias_linear");
    finish();
  }

  void gpt2() {
    begin("GPT2LMHeadModel");
    set("n_embd", widths_.hidden, "hidden_size");
    set("n_layer", widths_.layers, "num_layers");
    set("n_head", widths_.heads, "num_attention_heads");
    if (widths_.head_dim * widths_.heads != widths_.hidden) set("head_dim", widths_.head_dim, "kv_channels");
    set("n_inner", widths_.ffn, "ffn_hidden_size");
    set("n_positions", arguments_.required("max_position_embeddings", tokens), "max_position_embeddings");
    finish();
  }

  void mpt() {
    if (widths_.ffn % widths_.hidden != 0) {
      return no_family("ffn_hidden_size",
                       "learned positions without biases or with groups of queries, and an MLP that "
                       "is no multiple of the hidden size");
    }
    begin("MPTForCausalLM");
    set("d_model", widths_.hidden, "hidden_size");
    set("n_layers", widths_.layers, "num_layers");
    set("n_heads", widths_.heads, "num_attention_heads");
    if (widths_.head_dim * widths_.heads != widths_.hidden) set("head_dim", widths_.head_dim, "kv_channels");
    set("expansion_ratio", widths_.ffn / widths_.hidden, "ffn_hidden_size");
    set("max_seq_len", arguments_.required("max_position_embeddings", tokens), "max_position_embeddings");
    set_truth("no_bias", !has_biases_, "add_bias_linear");
    Value attention = Value::map(arguments_.position("num_query_groups"));
    attention.set("kv_n_heads", number_at(widths_.kv_heads, "num_query_groups"));
    config_.set("attn_config", std::move(attention));
    finish();
  }

  // A layer is one branch behind one norm, and MLPs and experts have no gate.
  void hybrid() {
    if (widths_.is_gated) return no_family("swiglu", "Mamba layers and a gated MLP");
    if (has_biases_) {
      return no_family("add_bias_linear", "Mamba layers and biases", "--disable-bias-linear, if there are none");
    }
    if (is_latent_) return no_family("multi_latent_attention", "Mamba layers and latent attention");
    if (has_qk_norm_) return no_family("qk_layernorm", "Mamba layers and norms of queries and keys");
    begin("NemotronHForCausalLM");
    set("hidden_size", widths_.hidden, "hidden_size");
    set("num_hidden_layers", widths_.layers, hybrid_argument(arguments_));
    set("num_attention_heads", widths_.heads, "num_attention_heads");
    set("num_key_value_heads", widths_.kv_heads, "num_query_groups");
    set("attention_head_dim", widths_.head_dim, "kv_channels");
    set("intermediate_size", widths_.ffn, "ffn_hidden_size");
    set_truth("attention_bias", has_qkv_biases_, "add_qkv_bias");
    set_hybrid_layers(arguments_, *widths_.letters, widths_.hidden, widths_.ffn, config_);
    if (positions_ == "learned_absolute") arguments_.assume("the table of learned positions is not simulated");
    finish();
  }

  // Mixtral has experts in all layers and nothing else; Qwen3 norms of queries and keys; DeepSeek shared experts and
  // layers without experts; GLM-4.5 all of it.
  void experts() {
    if (!widths_.is_gated) return no_family("swiglu", "experts without a gate");
    leave_out_biases();
    if (positions_ == "learned_absolute") {
      return no_family("position_embedding_type", "experts and learned positions",
                       "--position-embedding-type rope, if they are rotary");
    }
    read_experts();
    const bool is_even = std::find(with_experts_.begin(), with_experts_.end(), false) == with_experts_.end();
    if (is_latent_) {
      latent();
    } else if (variant_ == AttentionVariant::delta_nets) {
      delta_nets_and_experts();
    } else if (has_shared_gate_) {
      gate_of_shared();
    } else if (has_qk_norm_ && shared_ == 0) {
      qwen3_experts();
    } else if (has_qk_norm_ || has_qkv_biases_) {
      deepseek_experts("Glm4MoeForCausalLM");
      set_truth("use_qk_norm", has_qk_norm_, "qk_layernorm");
      set_truth("attention_bias", has_qkv_biases_, "add_qkv_bias");
    } else if (shared_ == 0 && is_even) {
      mixtral();
    } else {
      deepseek_experts("DeepseekForCausalLM");
    }
    finish();
  }

  void read_experts() {
    experts_ = arguments_.number("num_experts", experts_range, 0);
    per_token_ = arguments_.number("moe_router_topk", chosen, 2);
    expert_ffn_ = arguments_.number("moe_ffn_hidden_size", width, widths_.ffn);
    shared_ = arguments_.number("moe_shared_expert_intermediate_size", {0, width.most}, 0);
    has_shared_gate_ = shared_ > 0 && arguments_.is_on("moe_shared_expert_gate");
    with_experts_ =
        marks("moe_layer_freq", 1, [](std::int64_t layer, std::int64_t every) { return layer % every == 0; });
    if (experts_ == 0) with_experts_.assign(static_cast<std::size_t>(widths_.layers), false);
  }

  void latent() {
    const bool chooses = variant_ == AttentionVariant::indexer;
    deepseek_experts(chooses ? "DeepseekV32ForCausalLM" : "DeepseekV3ForCausalLM");
    if (chooses) set_indexer(arguments_, config_);
    const auto set_width = [this](std::string_view key, std::string_view argument, std::int64_t usual) {
      set(key, arguments_.number(argument, width, usual), argument);
    };
    if (arguments_.has("q_lora_rank")) set_width("q_lora_rank", "q_lora_rank", 0);
    set_width("kv_lora_rank", "kv_lora_rank", 32);
    set_width("qk_nope_head_dim", "qk_head_dim", 128);
    set_width("qk_rope_head_dim", "qk_pos_emb_head_dim", 64);
    set_width("v_head_dim", "v_head_dim", 128);
    if (has_qkv_biases_) no_family("add_qkv_bias", "latent attention with biases");
    if (!has_qk_norm_) {
      arguments_.assume("latents have norms, as in DeepSeek-V3; Megatron-LM has none without --qk-layernorm");
    }
  }

  void deepseek_experts(const std::string& family) {
    begin(family);
    set_widths(widths_.ffn, "ffn_hidden_size");
    set("n_routed_experts", experts_, "num_experts");
    set("moe_intermediate_size", expert_ffn_, "moe_ffn_hidden_size");
    set_per_token();
    set("n_shared_experts", shared_ / std::max<std::int64_t>(expert_ffn_, 1), "moe_shared_expert_intermediate_size");
    if (expert_ffn_ > 0 && shared_ % expert_ffn_ != 0) {
      no_family(
          "moe_shared_expert_intermediate_size",
          fmt::format("shared experts of a width {} that is no multiple of an expert's, {}", shared_, expert_ffn_));
    }
    set_layers_without_experts();
  }

  void qwen3_experts() {
    begin("Qwen3MoeForCausalLM");
    set_truth("attention_bias", has_qkv_biases_, "add_qkv_bias");
    set_widths(widths_.ffn, "ffn_hidden_size");
    set("num_experts", experts_, "num_experts");
    set("moe_intermediate_size", expert_ffn_, "moe_ffn_hidden_size");
    set_per_token();
    set_layers_without_experts();
  }

  // The only family with a gate of shared experts has biases, too.
  void gate_of_shared() {
    if (!has_qkv_biases_ || has_qk_norm_) {
      return no_family("moe_shared_expert_gate", "a gate of shared experts without biases of queries and keys");
    }
    begin("Qwen2MoeForCausalLM");
    gated_experts();
  }

  void gated_experts() {
    set_widths(widths_.ffn, "ffn_hidden_size");
    set("num_experts", experts_, "num_experts");
    set("moe_intermediate_size", expert_ffn_, "moe_ffn_hidden_size");
    set("shared_expert_intermediate_size", shared_, "moe_shared_expert_intermediate_size");
    set_per_token();
    set_layers_without_experts();
  }

  // Megatron-LM counts layers from 1 here, and the last of a period attends.
  void delta_nets() {
    if (!arguments_.has("linear_attention_freq")) {
      static_cast<void>(arguments_.required("linear_attention_freq", layers));
    }
    const LayerMarks linear = marks("linear_attention_freq", 1,
                                    [](std::int64_t layer, std::int64_t every) { return (layer + 1) % every != 0; });
    set_delta_nets(arguments_, linear, config_);
  }

  void delta_nets_and_experts() {
    if (shared_ > 0 && !has_shared_gate_) {
      return no_family("moe_shared_expert_intermediate_size", "delta nets and shared experts without a gate");
    }
    begin("Qwen3NextForCausalLM");
    delta_nets();
    set_truth("attention_bias", has_qkv_biases_, "add_qkv_bias");
    gated_experts();
  }

  void mixtral() {
    begin("MixtralForCausalLM");
    set_widths(expert_ffn_, "moe_ffn_hidden_size");
    set("num_local_experts", experts_, "num_experts");
    set_per_token();
  }

  // ---- Parts of configurations

  void begin(const std::string& family) {
    Value names = Value::sequence(config_.position);
    names.items.push_back(Value::scalar(family, config_.position));
    names.items.back().quoted = true;
    config_.set("architectures", std::move(names));
  }

  // `inner`: the width inside of an MLP.
  void set_widths(std::int64_t inner, std::string_view inner_argument) {
    set("hidden_size", widths_.hidden, "hidden_size");
    set("num_hidden_layers", widths_.layers, "num_layers");
    set("num_attention_heads", widths_.heads, "num_attention_heads");
    set("num_key_value_heads", widths_.kv_heads, "num_query_groups");
    if (!is_latent_) set("head_dim", widths_.head_dim, "kv_channels");
    set("intermediate_size", inner, inner_argument);
  }

  void set_per_token() {
    set("num_experts_per_tok", per_token_, "moe_router_topk");
    const auto groups = arguments_.number("moe_router_num_groups", experts_range);
    const auto taken = arguments_.number("moe_router_group_topk", experts_range);
    if (groups) set("n_group", *groups, "moe_router_num_groups");
    if (taken) set("topk_group", *taken, "moe_router_group_topk");
  }

  void set_layers_without_experts() {
    if (experts_ == 0) return;
    Value without = Value::sequence(arguments_.position("moe_layer_freq"));
    for (std::size_t i = 0; i < with_experts_.size(); ++i) {
      if (!with_experts_[i]) without.items.push_back(number_at(static_cast<std::int64_t>(i), "moe_layer_freq"));
    }
    if (!without.items.empty()) config_.set("mlp_only_layers", std::move(without));
  }

  void finish() {
    set("vocab_size", widths_.vocabulary, "vocab_size");
    set_truth("tie_word_embeddings", !arguments_.is_on("untie_embeddings_and_output_weights"),
              "untie_embeddings_and_output_weights");
    note_norms();
  }

  // Megatron numbers layers from 1 here.
  void read_window() {
    std::string text = joined(arguments_.words("window_size"), ",");
    std::erase_if(text, [](char c) { return c == '(' || c == ')' || c == ' '; });
    if (text.empty()) return;
    const Value before = Value::scalar(text.substr(0, text.find(',')), arguments_.position("window_size"));
    const auto tokens_before =
        read_in<std::int64_t>(before, arguments_.written("window_size"), {-1, tokens.most}, arguments_.diagnostics());
    if (!tokens_before || *tokens_before < 0) return;
    const LayerMarks windows = marks("window_attn_skip_freq", 0, [](std::int64_t layer, std::int64_t every) {
      return every == 0 || (layer + 1) % every != 0;
    });
    Value types = Value::sequence(before.position);
    for (const bool has_window : windows) {
      types.items.push_back(Value::scalar(has_window ? "sliding_attention" : "full_attention", before.position));
      types.items.back().quoted = true;
    }
    set("sliding_window", *tokens_before + 1, "window_size");
    config_.set("layer_types", std::move(types));
  }

  // For each layer, what an argument says that is a period or a list.
  template <class OfPeriod>
  LayerMarks marks(std::string_view key, std::int64_t usual, const OfPeriod& of_period) {
    const std::vector<std::string> words = arguments_.words(key);
    const auto count = static_cast<std::size_t>(widths_.layers);
    LayerMarks found;
    if (words.size() > 1 || (words.size() == 1 && words[0].find('[') != std::string::npos)) {
      const std::string text = words.size() > 1 ? fmt::format("[{}]", joined(words, ",")) : words[0];
      const auto list = layer_list(text, static_cast<std::size_t>(layers.most));
      if (list && list->size() == count) {
        for (const std::int64_t each : *list) found.push_back(each != 0);
        return found;
      }
      arguments_.diagnostics().error(
          arguments_.position(key),
          list ? fmt::format("{} is about {} layers, but the model has {}", arguments_.written(key), list->size(),
                             widths_.layers)
               : fmt::format("{} is neither a number nor a list such as [0]*3+[1]*58", arguments_.written(key)));
      return LayerMarks(count, true);
    }
    const std::int64_t period = arguments_.number(key, layers, usual);
    for (std::int64_t layer = 0; layer < widths_.layers; ++layer) found.push_back(of_period(layer, period));
    return found;
  }

  [[nodiscard]] Value number_at(std::int64_t value, std::string_view argument) const {
    return Value::scalar(std::to_string(value), arguments_.position(argument));
  }

  void set(std::string_view key, std::int64_t value, std::string_view argument) {
    config_.set(key, number_at(value, argument));
  }

  void set_truth(std::string_view key, bool value, std::string_view argument) {
    config_.set(key, Value::scalar(value ? "true" : "false", arguments_.position(argument)));
  }

  void no_family(std::string_view argument, const std::string& what, const std::string& help = {}) {
    arguments_.diagnostics().unsupported(arguments_.position(argument),
                                         fmt::format("no family of models that is known here has {}", what), help);
  }

  // Families without biases have norms without biases.
  void note_norms() {
    if (has_biases_ || arguments_.word("normalization", "LayerNorm") == "RMSNorm") return;
    arguments_.assume(fmt::format("norms are simulated without the biases of LayerNorm, {} parameters of each layer",
                                  2 * widths_.hidden),
                      arguments_.has("normalization") ? arguments_.position("normalization") : Position{});
  }

  const MegatronArguments& arguments_;
  MegatronWidths widths_;
  Value config_ = Value::map();

  std::string positions_;
  bool is_latent_ = false;
  AttentionVariant variant_ = AttentionVariant::none;
  bool has_biases_ = false;
  bool has_qkv_biases_ = false;
  bool has_qk_norm_ = false;

  std::int64_t experts_ = 0;
  std::int64_t per_token_ = 0;
  std::int64_t expert_ffn_ = 0;
  std::int64_t shared_ = 0;
  bool has_shared_gate_ = false;
  LayerMarks with_experts_;
};

}  // namespace

Value megatron_model(const MegatronArguments& arguments, std::int64_t tp, std::optional<std::int64_t> entries) {
  return ModelReader(arguments, tp, entries).read();
}

bool has_experts(const MegatronArguments& arguments) {
  return arguments.has("num_experts") && arguments.words("num_experts") != std::vector<std::string>{"0"};
}

}  // namespace hdpsim
