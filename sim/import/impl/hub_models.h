#pragma once

#include <optional>
#include <string>

#include "sim/import/training_run.h"
#include "sim/study/catalog.h"

namespace hdpsim {

/// The model that a name of HuggingFace's hub, or of a folder with its files, means: `Qwen/Qwen2.5-7B-Instruct`. It is
/// a shipped model of that shape or, for families whose sizes are known here, its configuration. Words that do not
/// change a shape (`Instruct`, `hf`, `2507`) do not count. Empty if the shape is not known.
[[nodiscard]] std::optional<NamedModel> hub_model(const std::string& name, const Catalog& catalog);

/// What a study needs to know of a shipped model, or of a configuration; empty if it cannot be simulated.
[[nodiscard]] std::optional<NamedModel> named_model_of(const Value& model, const Catalog& catalog,
                                                       Diagnostics& diagnostics);

}  // namespace hdpsim
