#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "sim/trace/length_distribution.h"
#include "sim/trace/length_source.h"
#include "sim/trace/trace_file.h"

namespace hdpsim {

struct WriteOptions {
  std::optional<TraceFormat> format = {};  ///< By default from the extension of the path.
  int points = 1000;                       ///< Points of a quantile table.
};

/// Writes all lengths of a source as lines, csv, jsonl, npy, histogram (four bins per octave) or quantiles, and returns
/// their number. CSV and JSON lines keep the steps, the other formats have no place for them. The file appears under
/// its name only when it is complete; until then it is written next to it under a temporary name. MachineError if that
/// fails, InputError if the source throws it or is empty, or if the format cannot be written.
std::int64_t write_trace(LengthSource& source, const std::filesystem::path& path, const WriteOptions& options = {});

/// Writes a distribution as a quantile table, without drawing from it.
void write_quantiles(const LengthDistribution& distribution, const std::filesystem::path& path, int points = 1000);

}  // namespace hdpsim
