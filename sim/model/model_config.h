#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/document/document.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// The transformer that a HuggingFace config.json describes. Empty if there are problems, which are reported with their
/// place. Known families: Llama, Mistral, Qwen2, Mixtral, Qwen2-MoE, Qwen3-MoE, DeepSeek-MoE, GPT-2, GPT-NeoX, MPT.
/// DeepSeek-V2 and V3 are refused for their multi-head latent attention. Keys that do not affect cost are ignored,
/// because those files hold many. `name` becomes the model's name.
[[nodiscard]] std::optional<Transformer> read_model(const Value& config, const std::string& name,
                                                    Diagnostics& diagnostics);

/// The same for a file; the model is named after the file, or after its folder if the file is config.json.
[[nodiscard]] std::optional<Transformer> load_model(const std::string& path, Diagnostics& diagnostics);

/// The preset `name` in a directory of configurations (configs/models). An unknown name is reported at `asked_at`, with
/// a suggestion. `changes` replace keys of the configuration, under the names that it uses (`num_hidden_layers`); a key
/// that it does not have is reported.
[[nodiscard]] std::optional<Transformer> load_model_preset(const std::string& name, const std::string& directory,
                                                           const Position& asked_at, Diagnostics& diagnostics,
                                                           const std::vector<Value::Entry>& changes = {});

/// Names of the presets of a directory, sorted.
[[nodiscard]] std::vector<std::string> model_preset_names(const std::string& directory);

}  // namespace hdpsim
