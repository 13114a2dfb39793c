#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// The transformer that a HuggingFace config.json describes. Empty if there are problems, which are reported with their
/// place. The known families are the rows of architectures() (sim/model/impl/architecture.h). Keys that do not affect
/// cost are ignored, because those files hold many. `name` becomes the model's name.
[[nodiscard]] std::optional<Transformer> read_model(const Value& config, const std::string& name,
                                                    Diagnostics& diagnostics);

/// The same for a file; the model is named after the file, or after its folder if the file is config.json. `changes`
/// replace keys of the configuration, under the names that it uses (`num_hidden_layers`); a key that it does not have
/// is reported. `architecture` stands for that of the file.
[[nodiscard]] std::optional<Transformer> load_model(const std::string& path, Diagnostics& diagnostics,
                                                    const std::vector<Value::Entry>& changes = {});

/// The preset `name` in a directory of configurations (configs/models). An unknown name is reported at `asked_at`, with
/// a suggestion.
[[nodiscard]] std::optional<Transformer> load_model_preset(const std::string& name, const std::string& directory,
                                                           const Position& asked_at, Diagnostics& diagnostics,
                                                           const std::vector<Value::Entry>& changes = {});

/// The architectures that are known, each with models that have it, in the order of the table.
struct KnownArchitecture {
  std::string_view name;
  std::string_view models;
};
[[nodiscard]] std::vector<KnownArchitecture> known_architectures();

/// Names of the presets of a directory, sorted.
[[nodiscard]] std::vector<std::string> model_preset_names(const std::string& directory);

}  // namespace hdpsim
