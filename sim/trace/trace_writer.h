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
  int points = 1000;                       ///< Of a quantile table.
};

/// Writes all lengths of a source as lines, csv, jsonl, npy, histogram (four bins an octave) or quantiles, and returns
/// how many there were. CSV and JSON lines keep the steps, the others have no place for them. The file appears under
/// its name only when it is complete: it is written beside it under a temporary name. MachineError if that fails,
/// InputError if the source throws it, holds nothing, or the format cannot be written.
std::int64_t write_trace(LengthSource& source, const std::filesystem::path& path, const WriteOptions& options = {});

/// Writes a distribution as a quantile table, without drawing from it.
void write_quantiles(const LengthDistribution& distribution, const std::filesystem::path& path, int points = 1000);

}  // namespace hdpsim
