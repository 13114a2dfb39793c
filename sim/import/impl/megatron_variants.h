#pragma once

#include <cstdint>
#include <vector>

#include "sim/import/impl/megatron_arguments.h"

namespace hdpsim {

/// What --experimental-attention-variant puts in place of attention to all tokens.
enum class AttentionVariant : std::uint8_t {
  none,
  indexer,     ///< dsa: an indexer chooses the keys of queries.
  delta_nets,  ///< gdn, gated_delta_net: some layers are gated delta nets.
  other,
};
[[nodiscard]] AttentionVariant attention_variant(const MegatronArguments& arguments);

/// Adds the indexer to a configuration of DeepseekV32ForCausalLM. Arguments that are missing are reported.
void set_indexer(const MegatronArguments& arguments, Value& config);

/// Adds gated delta nets, and which layers they are (`linear`), to a configuration of Qwen3NextForCausalLM or
/// Qwen3_5ForCausalLM.
void set_delta_nets(const MegatronArguments& arguments, const std::vector<bool>& linear, Value& config);

}  // namespace hdpsim
