#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/import/training_run.h"

namespace hdpsim {

/// The training that files state, whatever framework they are of; several, if they belong together. Problems are
/// reported all together.
[[nodiscard]] TrainingRun read_training(const std::vector<ConfigText>& files, const ImportOptions& options,
                                        Diagnostics& diagnostics);

/// The text of a file that another one names: looked for from the folder of that file upwards, as people start a
/// training somewhere above it, and under its own name beside it. Empty if it is at none of these places.
[[nodiscard]] std::optional<ConfigText> text_beside(const std::string& path, const std::string& named_by);

}  // namespace hdpsim
