#include "sim/model/impl/unread_keys.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/model/impl/near_architecture.h"

namespace hdpsim {
namespace {

bool is_repetition(const DecidingKey& key, const Architecture& family) {
  switch (key.repetition) {
    case Repetition::of_none:
      break;
    case Repetition::of_families_with_experts:
      return family.experts != nullptr;
    case Repetition::of_families_with_linear_mixing:
      return family.linear.kind != LinearKind::none;
  }
  return false;
}

}  // namespace

const std::vector<DecidingKey>& deciding_keys() {
  constexpr std::string_view experts = "experts in place of its MLP";
  constexpr std::string_view linear = "layers that mix tokens in linear time";
  constexpr std::string_view streams = "several residual streams";
  constexpr std::string_view window_heads = "layers with a window that have heads of their own";
  constexpr std::string_view full_heads = "layers without a window that have heads of their own";
  static const std::vector<DecidingKey> all = {
      {"index_topk", "an indexer that chooses the tokens which a token sees (DeepSeek sparse attention)"},
      {"sparse_attention_config", "an indexer that chooses the blocks of tokens which a token sees"},
      {"compress_ratios", "attention to compressed keys and values"},
      {"o_lora_rank", "an output projection through a latent"},
      {"mla_use_output_gate", "a gate of latent attention's output"},
      {"num_attention_groups", "groups of key-value heads under a key of its own"},
      {"share_q_dim", "queries that are made through a latent"},
      {"swa_num_key_value_heads", window_heads},
      {"attention_other_setting", window_heads},
      {"num_global_key_value_heads", full_heads},
      {"global_head_dim", full_heads},
      {"attention_k_eq_v", "keys that are values, too"},
      {"num_kv_shared_layers", "layers that take keys and values of other layers"},
      {"cross_attention_layers", "layers that attend to an encoder"},
      {"attn_output_gate", "a gate of attention's output"},
      {"linear_attn_config", linear},
      {"linear_num_value_heads", linear, Repetition::of_families_with_linear_mixing},
      {"mamba_num_heads", linear, Repetition::of_families_with_linear_mixing},
      {"mamba_n_heads", linear, Repetition::of_families_with_linear_mixing},
      {"mamba_d_ssm", "Mamba beside attention in one layer, which no layer here has"},
      {"hc_mult", streams},
      {"altup_num_inputs", streams},
      {"attn_res_block_size", "residual streams that attend to earlier layers"},
      {"laurel_rank", "branches of low rank beside every layer"},
      {"hidden_size_per_layer_input", "embeddings that every layer adds"},
      {"moe_latent_size", "experts that work in a latent"},
      {"routed_expert_hidden_size", "experts that work in a latent"},
      {"n_shared_experts", "shared experts"},
      {"share_expert_dim", "a shared expert"},
      {"enable_moe_block", "experts beside the MLP of every layer"},
      {"use_double_wide_mlp", "layers with an MLP of twice the width"},
      {"num_experts", experts, Repetition::of_families_with_experts},
      {"num_local_experts", experts, Repetition::of_families_with_experts},
      {"n_routed_experts", experts, Repetition::of_families_with_experts},
      {"moe_num_experts", experts, Repetition::of_families_with_experts},
      {"block_configs", "layers of many widths, each described by itself"},
  };
  return all;
}

namespace {

const DecidingKey* deciding_key(const Value::Entry& entry) {
  const auto& all = deciding_keys();
  const auto key = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == entry.key; });
  return key == all.end() || !says_something(entry.value) ? nullptr : &*key;
}

}  // namespace

void refuse_unread(const Architecture& family, const Value& language, Diagnostics& diagnostics) {
  for (const Value::Entry& entry : language.entries) {
    const DecidingKey* key = deciding_key(entry);
    if (key == nullptr || reads_key(family, entry.key) || is_repetition(*key, family)) continue;
    diagnostics.error(
        entry.position,
        fmt::format("'{}' says that the model has {}, which {} has not", entry.key, key->what, family.name),
        fmt::format("to simulate it without, write model: {{..., {}: 0}}", entry.key));
  }
}

void tell_deciding(const Value& language, Diagnostics& diagnostics) {
  for (const Value::Entry& entry : language.entries) {
    const DecidingKey* key = deciding_key(entry);
    if (key == nullptr || is_read(entry.key)) continue;
    diagnostics.error(entry.position, fmt::format("'{}' says that the model has {}", entry.key, key->what));
  }
}

bool is_read(std::string_view key) {
  const auto all = architectures();
  return std::any_of(all.begin(), all.end(), [&](const Architecture& family) { return reads_key(family, key); });
}

void tell_unread(const Architecture& family, const Value& config, Transformer& model) {
  const std::vector<std::string> unread = resemblance(family, config).unread;
  if (unread.empty()) return;
  model.left_out.push_back(fmt::format("what the configuration says of its shape under {}: {} does not read {}",
                                       first_of(unread), family.name, unread.size() == 1 ? "that key" : "those keys"));
}

std::string first_of(const std::vector<std::string>& keys) {
  constexpr std::size_t most = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(keys.size(), most); ++i) {
    text += fmt::format("{}'{}'", i == 0 ? "" : ", ", keys[i]);
  }
  return keys.size() > most ? fmt::format("{} and {} more", text, keys.size() - most) : text;
}

}  // namespace hdpsim
