#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/text.h"
#include "sim/trace/impl/file_problems.h"
#include "sim/trace/length_distribution.h"
#include "sim/trace/length_source.h"
#include "sim/trace/trace_file.h"

namespace hdpsim {

// One reader per format; open_trace() and read_distribution() choose among them.
[[nodiscard]] std::unique_ptr<LengthSource> open_lines(const std::filesystem::path& path);
[[nodiscard]] std::unique_ptr<LengthSource> open_csv(const std::filesystem::path& path, const TraceOptions& options);
[[nodiscard]] std::unique_ptr<LengthSource> open_jsonl(const std::filesystem::path& path, const TraceOptions& options);
[[nodiscard]] std::unique_ptr<LengthSource> open_npy(const std::filesystem::path& path);
[[nodiscard]] std::unique_ptr<LengthSource> open_megatron(const std::filesystem::path& path);

[[nodiscard]] std::vector<LengthBin> read_histogram(const std::filesystem::path& path);
[[nodiscard]] std::vector<QuantilePoint> read_quantiles(const std::filesystem::path& path);
[[nodiscard]] std::vector<TokenShareClass> read_mixture(const std::filesystem::path& path);

/// Whether the first line of a text is meant as one length: neither a header nor several numbers.
[[nodiscard]] bool begins_with_length(const std::filesystem::path& path);

/// Which columns of a CSV or fields of a JSON object hold the length and the step.
struct LengthColumns {
  std::vector<std::string> lengths;  ///< The tokens of a document are the sum of all; some may be 0, not all.
  std::string step;                  ///< Empty: none.
  bool found = false;                ///< Whether `lengths` were found by their usual names and nobody has named them.

  /// LengthSource::column().
  [[nodiscard]] std::string told() const { return found ? joined(lengths, "+") : std::string{}; }

  /// Parses the text of a column of `lengths` as a number.
  [[nodiscard]] Parsed<std::int64_t> parse(std::string_view text) const {
    return lengths.size() == 1 ? parse_length(text) : parse_part_of_length(text);
  }
};

/// True for the only column of a file whose first line is a length: it has no header.
[[nodiscard]] bool is_headerless(const std::vector<std::string>& names);

/// Chooses among the names in the file, as TraceOptions says. Problems are fatal and reported at `place`.
[[nodiscard]] LengthColumns choose_columns(const std::vector<std::string>& names, const TraceOptions& options,
                                           const TextPlace& place, FileProblems& problems);

}  // namespace hdpsim
