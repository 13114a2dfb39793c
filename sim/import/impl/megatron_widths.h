#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/import/impl/megatron_arguments.h"

namespace hdpsim {

/// The widths of a model with the defaults and derived values of Megatron-LM. A required one that is missing is 0.
struct MegatronWidths {
  std::int64_t layers = 0;
  std::optional<std::string> letters = {};  ///< Of a hybrid model's layers: hybrid_letters().
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;
  bool is_gated = false;        ///< The MLP has a gate.
  std::int64_t vocabulary = 0;  ///< Padded.
};

/// Reported are arguments that are missing or wrong. `tp` decides how the vocabulary is padded; `entries` are those of
/// the tokenizer, where the user states them.
[[nodiscard]] MegatronWidths megatron_widths(const MegatronArguments& arguments, std::int64_t tp,
                                             std::optional<std::int64_t> entries);

}  // namespace hdpsim
