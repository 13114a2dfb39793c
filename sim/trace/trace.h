#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "sim/trace/batch_source.h"
#include "sim/trace/description.h"
#include "sim/trace/length_distribution.h"
#include "sim/trace/length_fit.h"
#include "sim/trace/length_source.h"
#include "sim/trace/length_tally.h"
#include "sim/trace/trace_file.h"

// Everything that the trace commands need:
//
//   describe   text_of(describe(*open_lengths(path, options)))
//   fit        text_of(fit(*open_lengths(path, options)))
//   convert    convert(from, options, to, write_options)
//   generate   write_trace(*make_drawn_lengths(load_preset("github", directory), seed, count), to)
//              write_trace(*make_batch_lengths(batches, steps), to)

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

/// How to draw documents from a distribution.
struct DrawOptions {
  std::uint64_t seed = 1;
  std::int64_t count = 1'000'000;
};

/// The lengths of a file of documents; for a file of a distribution, `draw.count` lengths drawn from it.
[[nodiscard]] std::unique_ptr<LengthSource> open_lengths(const std::filesystem::path& path,
                                                         const TraceOptions& options = {},
                                                         const DrawOptions& draw = {});

/// Rewrites a file of lengths in another format. A distribution becomes a quantile table directly, and any other format
/// through `draw.count` draws. Returns the number of lengths written, 0 for a table made directly. Errors as for
/// write_trace().
std::int64_t convert(const std::filesystem::path& from, const TraceOptions& options, const std::filesystem::path& to,
                     const WriteOptions& write = {}, const DrawOptions& draw = {});

}  // namespace hdpsim
