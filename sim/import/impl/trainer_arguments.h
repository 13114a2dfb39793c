#pragma once

#include <string_view>

#include "sim/import/impl/config_keys.h"
#include "sim/import/impl/trainer_run.h"

namespace hdpsim {

/// The rule of an argument of HuggingFace's Trainer, or of TRL; null if it is none. Formats that pass such arguments on
/// look here behind their own table.
[[nodiscard]] const KeyRule* trainer_argument_rule(std::string_view path);

/// Reads the arguments of HuggingFace's Trainer that all formats around it have by the same names: batches,
/// accumulation, optimizer, FSDP and DeepSpeed within the file, torch.compile, Liger's kernels.
void take_trainer_arguments(ConfigKeys& keys, TrainerRun& run);

/// Reads `gradient_checkpointing` and its kwargs; `otherwise`: where nothing states it.
void take_checkpointing(ConfigKeys& keys, TrainerRun& run, bool otherwise);

/// Reads FSDP's keys in a map, with or without `fsdp_` in front of each, as Accelerate and the Trainer have them.
/// `words` is the Trainer's own list (`full_shard auto_wrap`); null if there is none.
void take_fsdp(ConfigKeys& keys, const std::string& table, const Value* words, const Value* at, TrainerRun& run);

/// Reads a DeepSpeed configuration that is a map of the file at this path; at "", the file itself.
void take_deepspeed(ConfigKeys& keys, const std::string& table, TrainerRun& run);

/// The rule of a key of a DeepSpeed configuration, or of one of FSDP; null if it is none.
[[nodiscard]] const KeyRule* deepspeed_rule(std::string_view path);
[[nodiscard]] const KeyRule* fsdp_rule(std::string_view path);

}  // namespace hdpsim
