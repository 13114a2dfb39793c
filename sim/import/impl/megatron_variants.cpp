#include "sim/import/impl/megatron_variants.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "sim/import/impl/megatron_ranges.h"

namespace hdpsim {
namespace {

using namespace megatron_ranges;

void set(const MegatronArguments& arguments, std::string_view key, std::int64_t value, std::string_view argument,
         Value& config) {
  config.set(key, Value::scalar(std::to_string(value), arguments.position(argument)));
}

}  // namespace

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
