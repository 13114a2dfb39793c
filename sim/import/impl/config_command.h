#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/impl/config_format.h"
#include "sim/import/impl/launched_job.h"
#include "sim/import/shell_script.h"
#include "sim/import/training_run.h"

namespace hdpsim {

/// A command of a script that starts a training of HuggingFace's family.
struct ConfigCommand {
  const ConfigFormat* format = nullptr;
  std::string program;             ///< For people, and for those who ask what is trained: `trl dpo`.
  Position position;               ///< Of that program.
  Value arguments = Value::map();  ///< `--a-b 1` is `a_b: 1`, `a.b=1` is `a: {b: 1}`.
  std::vector<Value> files;        ///< Configurations among its words, and that of `accelerate launch`.
  LaunchedJob job;
  std::optional<Value> per_node = {};  ///< What the environment says of a node's processes ...
  std::optional<Value> nodes = {};     ///< ... and of nodes.
  std::optional<Value> visible = {};   ///< How many devices the program sees (CUDA_VISIBLE_DEVICES).
};

/// All commands of a script that start such a training, in their order. A word whose value the script does not tell is
/// written as the script has it (`$N`).
[[nodiscard]] std::vector<ConfigCommand> config_commands(const ShellScript& script, const std::string& file);

/// Words of which one is in every script that has such a command.
[[nodiscard]] bool names_config_program(const std::string& text);

}  // namespace hdpsim
