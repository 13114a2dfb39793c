#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/trace_file.h"

namespace hdpsim {

/// How the columns of a CSV state a distribution of lengths.
struct TableLayout {
  /// What says the lengths of a row.
  enum class Lengths {
    single,  ///< One length.
    ranges,  ///< A text such as "[2049, 4096]".
    uppers,  ///< The end of a bin that begins above the one before it.
    ends,    ///< Both ends, in two columns.
  };

  TraceFormat format = TraceFormat::histogram;  ///< Or quantiles, or mixture.
  Lengths lengths = Lengths::single;
  std::size_t lower = 0;       ///< The column of the lower end, of `ends`.
  std::size_t length = 0;      ///< The column of the length, the range or the (upper) end.
  std::size_t weight = 0;      ///< The column of counts, shares or quantiles.
  bool is_cumulative = false;  ///< The weight is that of all rows so far.
};

/// Decides by the meaning of all columns, and by their values where names leave a doubt: `p` is a quantile where it
/// rises to 1 or 100 and a share where it sums to that. Empty: every row is a document. InputError, with the way to say
/// what is meant, for what is neither or might be both, and for a file without a header.
[[nodiscard]] std::optional<TableLayout> find_table(const std::filesystem::path& path);

/// The layout of a file that is known to have this format. InputError if its columns do not state it.
[[nodiscard]] TableLayout table_of(const std::filesystem::path& path, TraceFormat format);

/// Whether the names alone say that rows are no documents: lengths, and how many there are of each.
[[nodiscard]] bool is_table_by_name(const std::vector<std::string>& columns);

}  // namespace hdpsim
