#include "sim/import/impl/megatron_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/division.h"

namespace hdpsim {
namespace {

using namespace megatron_ranges;

constexpr std::int64_t gpt2_entries = 50'257;  // GPT2BPETokenizer, the tokenizer of pretrain_gpt.py without another

class WidthReader {
 public:
  WidthReader(const MegatronArguments& arguments, std::int64_t tp, std::optional<std::int64_t> entries)
      : arguments_(arguments), tp_(tp), entries_(entries) {}

  MegatronWidths read() {
    const bool says_encoder = !arguments_.has("num_layers") && arguments_.has("encoder_num_layers");
    const std::string_view layers_key = says_encoder ? "encoder_num_layers" : "num_layers";
    const bool are_letters = states_layers(arguments_) && !arguments_.has(layers_key);
    widths_.layers = are_letters ? 0 : arguments_.required(layers_key, layers);
    read_hybrid();
    widths_.hidden = arguments_.required("hidden_size", hidden);
    widths_.heads = arguments_.required("num_attention_heads", heads);
    is_swiglu_ = arguments_.is_on("swiglu") || arguments_.word("activation_func", "gelu") == "swiglu";
    widths_.is_gated = is_swiglu_ || arguments_.is_on("quick_geglu") || arguments_.is_on("gated_linear_unit");
    widths_.ffn = arguments_.number("ffn_hidden_size", width, usual_ffn());
    widths_.kv_heads =
        arguments_.is_on("group_query_attention") ? arguments_.number("num_query_groups", heads, 1) : widths_.heads;
    if (!arguments_.has("kv_channels") && widths_.heads > 0 && widths_.hidden % widths_.heads != 0) {
      arguments_.diagnostics().error(
          arguments_.position("num_attention_heads"),
          fmt::format("{} heads do not divide the hidden size {}", widths_.heads, widths_.hidden),
          "state --kv-channels if the heads do not share the hidden size");
    }
    widths_.head_dim = arguments_.number("kv_channels", heads, widths_.heads > 0 ? widths_.hidden / widths_.heads : 0);
    widths_.vocabulary = padded_vocabulary();
    return std::move(widths_);
  }

 private:
  // Megatron-LM takes the letters where --num-layers says something else.
  void read_hybrid() {
    if (!is_hybrid(arguments_)) return;
    widths_.letters = hybrid_letters(arguments_, widths_.layers);
    const std::int64_t count = std::ssize(*widths_.letters);
    if (arguments_.has("num_layers") && count != widths_.layers) {
      arguments_.assume(
          fmt::format("the model has the {} layers of {}", count, arguments_.written(hybrid_argument(arguments_))),
          arguments_.position("num_layers"));
    }
    if (count == 0 && states_layers(arguments_)) {
      arguments_.diagnostics().error(arguments_.position(hybrid_argument(arguments_)), "no letter states a layer",
                                     fmt::format("write one a layer: {}", hybrid_letters_known));
    }
    widths_.layers = count;
  }

  // The width that keeps a gated MLP as large as a plain one of 4 h, a multiple of 64.
  [[nodiscard]] std::int64_t usual_ffn() const {
    return is_swiglu_ ? (4 * widths_.hidden * 2 / 3) / 64 * 64 : 4 * widths_.hidden;
  }

  [[nodiscard]] std::int64_t padded_vocabulary() const {
    const auto padded = arguments_.number("padded_vocab_size", vocabulary);
    if (padded && !entries_) return *padded;
    const std::int64_t entries = tokenizer_entries();
    const std::int64_t multiple = arguments_.number("make_vocab_size_divisible_by", {1, 1e6}, 128) * tp_;
    const std::int64_t rounded = rounded_up(entries, multiple);
    if (entries > 0 && rounded != entries) {
      arguments_.assume(fmt::format("the vocabulary of {} entries is padded to {}, a multiple of {} = {} x tp {}",
                                    entries, rounded, multiple, multiple / tp_, tp_));
    }
    return rounded;
  }

  [[nodiscard]] std::int64_t tokenizer_entries() const {
    if (entries_) return *entries_;
    const std::string tokenizer = arguments_.word("tokenizer_type", "GPT2BPETokenizer");
    if (tokenizer == "GPT2BPETokenizer") {
      if (!arguments_.has("tokenizer_type")) {
        arguments_.assume("the tokenizer is GPT2BPETokenizer, as in pretrain_gpt.py where none is stated");
      }
      return gpt2_entries;
    }
    const auto stated = arguments_.number("vocab_size", vocabulary);
    if (stated && tokenizer == "NullTokenizer") return *stated + 1;  // and the end of a document
    if (stated) {
      arguments_.assume(
          fmt::format("the {} has the {} entries that {} states", tokenizer, *stated, arguments_.written("vocab_size")),
          arguments_.position("vocab_size"));
      return *stated;
    }
    arguments_.diagnostics().error(arguments_.position("tokenizer_type"),
                                   fmt::format("nothing states the vocabulary of the {}", tokenizer),
                                   "--vocab-size N states it: the entries of the tokenizer, before they are padded");
    return 0;
  }

  const MegatronArguments& arguments_;
  std::int64_t tp_;
  std::optional<std::int64_t> entries_;  ///< Of the tokenizer.
  bool is_swiglu_ = false;
  MegatronWidths widths_;
};

void set(const MegatronArguments& arguments, std::string_view key, std::int64_t value, std::string_view argument,
         Value& config) {
  config.set(key, Value::scalar(std::to_string(value), arguments.position(argument)));
}

}  // namespace

MegatronWidths megatron_widths(const MegatronArguments& arguments, std::int64_t tp,
                               std::optional<std::int64_t> entries) {
  return WidthReader(arguments, tp, entries).read();
}

AttentionVariant attention_variant(const MegatronArguments& arguments) {
  const std::string word = arguments.word("experimental_attention_variant", "");
  if (word.empty()) return AttentionVariant::none;
  if (word == "dsa") return AttentionVariant::indexer;
  return word == "gdn" || word == "gated_delta_net" ? AttentionVariant::delta_nets : AttentionVariant::other;
}

void set_indexer(const MegatronArguments& arguments, Value& config) {
  const auto set_required = [&](std::string_view key, std::string_view argument, Range range) {
    set(arguments, key, arguments.required(argument, range), argument, config);
  };
  set_required("index_n_heads", "dsa_indexer_n_heads", heads);
  set_required("index_head_dim", "dsa_indexer_head_dim", heads);
  set_required("index_topk", "dsa_indexer_topk", tokens);
  set(arguments, "index_topk_freq", arguments.number("dsa_indexer_topk_freq", layers, 1), "dsa_indexer_topk_freq",
      config);
  // Megatron-LM counts layers from 1, and begins with the first at the latest (dsa.py, is_dsa_skip_topk_layer).
  const std::int64_t offset = arguments.number("dsa_indexer_skip_topk_offset", {0, layers.most}, 0);
  set(arguments, "index_skip_topk_offset", std::max<std::int64_t>(offset, 1), "dsa_indexer_skip_topk_offset", config);
  const bool learns = std::strtod(arguments.word("dsa_indexer_loss_coeff", "0").c_str(), nullptr) > 0;
  if (arguments.is_on("dsa_indexer_use_sparse_loss") && learns) return;
  arguments.assume(
      "the indexer learns, from the keys that it chooses, as with --dsa-indexer-loss-coeff and "
      "--dsa-indexer-use-sparse-loss");
}

void set_delta_nets(const MegatronArguments& arguments, const std::vector<bool>& linear, Value& config) {
  const auto set_number = [&](std::string_view key, std::int64_t usual) {
    set(arguments, key, arguments.number(key, heads, usual), key, config);
  };
  set_number("linear_conv_kernel_dim", 4);
  set_number("linear_key_head_dim", 128);
  set_number("linear_value_head_dim", 128);
  set_number("linear_num_key_heads", 16);
  set_number("linear_num_value_heads", 32);
  const Position position = arguments.position("linear_attention_freq");
  Value types = Value::sequence(position);
  for (const bool is_linear : linear) {
    types.items.push_back(Value::scalar(is_linear ? "linear_attention" : "full_attention", position));
    types.items.back().quoted = true;
  }
  config.set("layer_types", std::move(types));
  const bool has_gate = arguments.is_on("attention_output_gate");
  config.set("attn_output_gate",
             Value::scalar(has_gate ? "true" : "false", arguments.position("attention_output_gate")));
}

}  // namespace hdpsim
