#pragma once

#include <string>

#include "sim/import/argument.h"
#include "sim/import/training_run.h"

namespace hdpsim {

/// What arguments of Megatron-LM mean for a study, with the defaults and derived values of Megatron-Core with
/// Transformer Engine (megatron/training/arguments.py). `file` is the name that problems carry; they are reported all
/// together.
[[nodiscard]] TrainingRun read_megatron(const ArgumentList& list, const std::string& file, const ImportOptions& options,
                                        Diagnostics& diagnostics);

/// What a configuration file of torchtitan (TOML) means for a study, with the defaults of torchtitan's job_config.py.
/// A flavor of a model becomes the preset of its shape. `file` is the name that problems carry; they are reported all
/// together.
[[nodiscard]] TrainingRun read_torchtitan(const std::string& file, const std::string& text,
                                          const ImportOptions& options, Diagnostics& diagnostics);

}  // namespace hdpsim
