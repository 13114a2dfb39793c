#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/document/key.h"

namespace hdpsim {

/// `output: {perfetto: ...}`: which part of one step of every run becomes a timeline file.
struct PerfettoOptions {
  std::int64_t step = 0;
  std::vector<HdpRank> ranks;  ///< In the order of the file.
  Duration from{};
  Duration to = Duration::max();
};

/// `output` of a study: additional output files.
struct OutputOptions {
  bool html = true;
  std::size_t memory_ranks = 8;  ///< Number of ranks in memory.csv: the fullest.
  std::optional<PerfettoOptions> perfetto;
};

/// The ranks and steps that every run of the study has.
struct OutputLimits {
  std::int64_t ranks = std::numeric_limits<std::int64_t>::max();  ///< HDP ranks of its smallest mesh.
  std::int64_t steps = std::numeric_limits<std::int64_t>::max();  ///< Steps of its shortest run.
};

/// The keys of `output`.
[[nodiscard]] const std::vector<KeyText>& output_keys();

/// Reads `output: {html: false, memory: {ranks: 8}, perfetto: {ranks: 8, step: 0, from: 0 s, to: 2 s}}`.
/// `perfetto: true` is `{ranks: 8}`; a number of ranks means the first ones, fewer if there are fewer; a list, `[0,
/// 5]`, means those. All problems are reported.
[[nodiscard]] OutputOptions read_output(const Value& value, const OutputLimits& limits, Diagnostics& diagnostics);

}  // namespace hdpsim
