#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

/// `replay` of a study: the analysis of a long run by `hdpsim replay`.
struct ReplayOptions {
  /// Steps of one window; by default a fiftieth of the run, at least 10.
  std::optional<std::int64_t> window{};
  /// A plan has lost its lead in a window in which its speed-up over the baseline is below this.
  double threshold = 1.1;
  std::int64_t worst = 3;  ///< Number of slowest steps of each plan that are explained.
};

/// The keys of `replay`.
[[nodiscard]] const std::vector<KeyText>& replay_keys();

/// Reads `replay: {window: 50, threshold: 1.1, worst: 3}`. All problems are reported.
[[nodiscard]] ReplayOptions read_replay(const Value& replay, Diagnostics& diagnostics);

}  // namespace hdpsim
