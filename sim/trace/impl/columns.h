#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text.h"
#include "sim/trace/impl/file_problems.h"
#include "sim/trace/trace_file.h"

namespace hdpsim {

/// What a column can hold, by the words of its name: "seq_len", "SeqLen" and "seq len" have the same ones.
enum class ColumnMeaning : std::uint8_t {
  other,
  length,         ///< Tokens: `length`, `seq_len`, `num_tokens`.
  range,          ///< From which to which length: `range`, `bin`, `bucket`.
  lower,          ///< The shortest length of a bin: `lower`, `from`, `bin_start`.
  upper,          ///< The longest length of a bin: `upper_bound`, `to`, `max_len`.
  count,          ///< How many documents: `count`, `docs`, `num_samples`.
  number,         ///< The same, or the number of the row: `n`, `number`.
  share,          ///< The part of the documents: `frequency`, `percent`, `weight`.
  likelihood,     ///< The same, or something about a single document: `p`, `probability`, `ratio`.
  token_share,    ///< The part of the tokens: `token_share`.
  cumulative,     ///< Documents that are at most as long: `cdf`, `cum_count`.
  quantile,       ///< The part of the documents that is at most as long: `quantile`, `percentile`.
  unclear_share,  ///< Of longer documents, or of the tokens in shorter ones: `ccdf`, `cum_tokens`.
};

[[nodiscard]] ColumnMeaning meaning_of_column(std::string_view name);

/// Which columns of a CSV or fields of a JSON object hold the length and the step.
struct LengthColumns {
  std::vector<std::string> lengths;  ///< The tokens of a document are the sum of all; some may be 0, not all.
  std::string step;                  ///< Empty: none.
  bool found = false;                ///< Whether `lengths` were found by their usual names and nobody has named them.

  /// LengthSource::column().
  [[nodiscard]] std::string found_names() const { return found ? joined(lengths, "+") : std::string{}; }
};

/// Whether a name says lengths, and not tokens: `lengths`, `seq_lens`.
[[nodiscard]] bool is_name_of_lengths(std::string_view name);

/// True for the only column of a file whose first line is a length: it has no header.
[[nodiscard]] bool is_headerless(const std::vector<std::string>& names);

/// Chooses among the names in the file, as TraceOptions says. Problems are fatal and reported at `place`.
[[nodiscard]] LengthColumns choose_columns(const std::vector<std::string>& names, const TraceOptions& options,
                                           const TextPlace& place, FileProblems& problems);

}  // namespace hdpsim
