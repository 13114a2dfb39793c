#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/import/impl/config_keys.h"
#include "sim/import/impl/trainer_run.h"

namespace hdpsim {

/// A format of configurations around HuggingFace's models: what its keys mean.
struct ConfigFormat {
  std::string_view name;  ///< As the signatures of foreign_formats.h have it.
  RuleOfPath rule_of;     ///< Of its table of keys, and of those of formats that it contains.
  const RuleTable& (*table)();
  void (*read)(ConfigKeys& keys, TrainerRun& run);
  bool is_part = false;               ///< It says how a training is launched or sharded, and not what is trained.
  bool spreads_layers = false;        ///< Of a command that starts one process on several devices.
  std::string_view files_named = {};  ///< Keys that name another file of the training, with blanks between them.
};

// One function for each format, in a file of its own.

[[nodiscard]] const ConfigFormat& accelerate_format();
[[nodiscard]] const ConfigFormat& axolotl_format();
[[nodiscard]] const ConfigFormat& deepspeed_format();
[[nodiscard]] const ConfigFormat& llama_factory_format();
[[nodiscard]] const ConfigFormat& ms_swift_format();
[[nodiscard]] const ConfigFormat& openrlhf_format();
[[nodiscard]] const ConfigFormat& training_arguments_format();
[[nodiscard]] const ConfigFormat& verl_format();

/// The format of a name; null if such files are not read.
[[nodiscard]] const ConfigFormat* config_format_named(std::string_view name);

}  // namespace hdpsim
