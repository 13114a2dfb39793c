#pragma once

#include <vector>

#include "sim/analysis/goodput.h"
#include "sim/document/key.h"

namespace hdpsim {

/// The keys of `failures`.
[[nodiscard]] const std::vector<KeyText>& failure_keys();

/// Reads `{node_mtbf: 5 years, checkpoint: 60 s, restart: 10 min, interval: 30 min, seed: 1}`; `restart` (0 s),
/// `interval` (auto: Daly's optimum) and `seed` are optional. All problems are reported.
[[nodiscard]] FailureModel read_failures(const Value& value, Diagnostics& diagnostics);

}  // namespace hdpsim
