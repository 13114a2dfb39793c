#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

/// `replay` of a study: what `hdpsim replay` tells of a long run.
struct ReplayOptions {
  /// Steps that are looked at together; by default a fiftieth of the run, at least 10.
  std::optional<std::int64_t> window{};
  /// A plan has lost its lead where it is not so many times as fast as the baseline, over a window.
  double threshold = 1.1;
  std::int64_t worst = 3;  ///< Slowest steps of each plan that are explained.
};

/// The keys of `replay`.
[[nodiscard]] const std::vector<KeyText>& replay_keys();

/// Reads `replay: {window: 50, threshold: 1.1, worst: 3}`. All problems are reported.
[[nodiscard]] ReplayOptions read_replay(const Value& replay, Diagnostics& diagnostics);

}  // namespace hdpsim
