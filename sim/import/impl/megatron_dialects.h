#pragma once

#include <optional>
#include <string>

#include "sim/document/document.h"
#include "sim/import/argument.h"
#include "sim/import/training_run.h"

namespace hdpsim {

// Programs that train with Megatron-Core and have names and defaults of their own for its arguments.

/// Reads the arguments of ms-swift's `megatron sft` (`pt`, `rlhf`), whose model is one of the hub's names.
[[nodiscard]] TrainingRun read_swift_megatron(ArgumentList list, const std::string& file, const ImportOptions& options,
                                              Diagnostics& diagnostics);

/// Whether a document is a configuration of NeMo's GPT models (megatron_gpt_config.yaml).
[[nodiscard]] bool is_nemo_configuration(const Value& root);
/// Its keys as arguments of Megatron-LM. `${model.KEY}` and `${.KEY}` are what that key says.
[[nodiscard]] ArgumentList arguments_of_nemo(const Value& root);

}  // namespace hdpsim
