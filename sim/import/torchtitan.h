#pragma once

#include <string>

#include "sim/import/training_run.h"

namespace hdpsim {

/// What a configuration file of torchtitan (TOML) means for a study, with the defaults of torchtitan's job_config.py.
/// A flavor of a model becomes the preset of its shape. `file` is the name that problems carry; they are reported all
/// together.
[[nodiscard]] TrainingRun read_torchtitan(const std::string& file, const std::string& text,
                                          const ImportOptions& options, Diagnostics& diagnostics);

}  // namespace hdpsim
