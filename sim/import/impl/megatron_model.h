#pragma once

#include <cstdint>

#include "sim/import/impl/megatron_arguments.h"
#include "sim/import/training_run.h"

namespace hdpsim {

/// The HuggingFace configuration of the model that the arguments describe, with the defaults and derived values of
/// Megatron-LM (megatron/training/arguments.py, validate_args), in a family that says what they say. Values stand at
/// the positions of their arguments. Reported are arguments that are missing or wrong, and what no family says.
/// `tp` decides how the vocabulary is padded; `entries` are those of the tokenizer, where the user states them.
[[nodiscard]] Value megatron_model(const MegatronArguments& arguments, std::int64_t tp,
                                   std::optional<std::int64_t> entries);

/// Whether they describe a model with experts.
[[nodiscard]] bool has_experts(const MegatronArguments& arguments);

}  // namespace hdpsim
