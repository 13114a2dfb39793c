#pragma once

#include <string>
#include <vector>

#include "sim/import/training_run.h"

namespace hdpsim {

/// Whether a YAML or JSON file is of a format that read_configuration() reads, by its keys.
[[nodiscard]] bool is_configuration(const std::string& file, const std::string& text);

/// What files that belong together say of one training around HuggingFace's models: a configuration of LLaMA-Factory,
/// axolotl, TRL or HuggingFace's Trainer, of Accelerate and of DeepSpeed. The first that states something counts, those
/// that say what is trained before those that say how. Files that one of them names are read, too
/// (`ImportOptions::file_beside`). Problems are reported all together.
[[nodiscard]] TrainingRun read_configuration(const std::vector<ConfigText>& files, const ImportOptions& options,
                                             Diagnostics& diagnostics);

/// Whether a text holds what starts a training that read_launched_configuration() reads.
[[nodiscard]] bool names_configuration(const std::string& text);

/// The same for a shell script that starts such a training (`llamafactory-cli train`, `swift sft`, `accelerate launch`,
/// `python -m verl.trainer.main_ppo`): its command's arguments, the files that they name, and the number of devices
/// that the launcher states. `more` are further files. Empty if no command of the script does.
[[nodiscard]] std::optional<TrainingRun> read_launched_configuration(const ConfigText& script,
                                                                     const std::vector<ConfigText>& more,
                                                                     const ImportOptions& options,
                                                                     Diagnostics& diagnostics);

}  // namespace hdpsim
