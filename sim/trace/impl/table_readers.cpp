#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/quantity_text.h"
#include "sim/document/limits.h"
#include "sim/trace/impl/csv_records.h"
#include "sim/trace/impl/readers.h"
#include "sim/trace/impl/table_layout.h"

namespace hdpsim {
namespace {

/// A CSV whose rows are all needed, with its problems.
class TableRows {
 public:
  explicit TableRows(const std::filesystem::path& path) : problems_(path.string()), records_(path, problems_) {}

  /// Reads the next row; false at the end of the file. A table of more than most_table_rows is fatal.
  bool next() {
    if (!records_.next()) return false;
    if (++read_ > most_table_rows) {
      problems_.fail(records_.place(0), fmt::format("more than {} rows describe a distribution", most_table_rows));
    }
    return true;
  }

  [[nodiscard]] const std::string& name(std::size_t column) const { return records_.columns()[column]; }
  [[nodiscard]] const std::string& text(std::size_t column) const { return records_.value(column); }

  template <class T>
  T value(std::size_t column, Parsed<T> (*parse)(std::string_view), T otherwise) {
    const Parsed<T> parsed = parse(records_.value(column));
    if (!parsed.value) add(column, parsed.error, parsed.help);
    return parsed.value.value_or(otherwise);
  }

  void add(std::size_t column, std::string message, std::string help = {}) {
    problems_.add(records_.place(column), std::move(message), std::move(help));
  }
  /// A problem of the table as a whole, which counts where its rows have none.
  void add_unless_wrong(std::string message, std::string help = {}) {
    if (problems_.empty()) problems_.add(std::move(message), std::move(help));
  }

  /// Checks the table after its last row.
  void finish(bool empty) {
    if (empty) add_unless_wrong("the file holds no rows under its header");
    problems_.throw_if_any();
  }

 private:
  FileProblems problems_;
  CsvRecords records_;
  std::int64_t read_ = 0;
};

constexpr const char* range_help = "write a range as \"[2049, 4096]\" or 2049-4096";

/// The ends of a range as they are written.
struct WrittenRange {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  bool without_lower = false;  ///< "(1024, 2048]"
  bool without_upper = false;  ///< "[1024, 2048)"
  bool is_open = false;        ///< No bracket says whether the ends belong to it.
};

// "[2049, 4096]", "(2048, 4096]", "2049-4096", "2K to 4K", "2048..4096".
std::optional<WrittenRange> written_range(std::string_view text) {
  WrittenRange range;
  range.without_lower = text.starts_with('(');
  range.without_upper = text.ends_with(')');
  const bool opens = range.without_lower || text.starts_with('[');
  const bool closes = range.without_upper || text.ends_with(']');
  if (opens != closes || text.size() < 3) return std::nullopt;
  range.is_open = !opens;
  if (opens) text = text.substr(1, text.size() - 2);
  for (const std::string_view separator : {",", "..", " to ", "\u2013", "-", ":"}) {
    const std::size_t at = text.find(separator);
    if (at == std::string_view::npos) continue;
    const Parsed<std::int64_t> lower = parse_count(without_blanks(text.substr(0, at)));
    const Parsed<std::int64_t> upper = parse_count(without_blanks(text.substr(at + separator.size())));
    if (!lower.value || !upper.value) return std::nullopt;
    range.lower = *lower.value;
    range.upper = *upper.value;
    return range;
  }
  return std::nullopt;
}

/// Reads the rows of a histogram, each of which becomes a bin.
class HistogramReader {
 public:
  HistogramReader(const std::filesystem::path& path, const TableLayout& layout) : rows_(path), layout_(layout) {}

  std::vector<LengthBin> read() {
    double all = 0;
    while (rows_.next()) {
      LengthBin bin = bin_of_row();
      bin.weight = weight_of_row();
      all += bin.weight;
      if (bin.upper < 1) continue;  // reported already
      if (layout_.lengths != TableLayout::Lengths::single) check(bin);
      bins_.push_back(bin);
      last_ = bin.upper;
    }
    if (!bins_.empty() && !(all > 0)) rows_.add_unless_wrong("all counts are 0");
    if (layout_.is_cumulative) check_complete();
    rows_.finish(bins_.empty());
    if (layout_.lengths == TableLayout::Lengths::single) join_equal_lengths();
    return std::move(bins_);
  }

 private:
  LengthBin bin_of_row() {
    switch (layout_.lengths) {
      case TableLayout::Lengths::single: {
        const auto length = rows_.value(layout_.length, parse_length, std::int64_t{0});
        return {length, length, 0};
      }
      case TableLayout::Lengths::uppers:
        return {last_ + 1, rows_.value(layout_.length, parse_length, std::int64_t{0}), 0};
      case TableLayout::Lengths::ends:
        return checked({.lower = rows_.value(layout_.lower, parse_part_of_length, std::int64_t{0}),
                        .upper = rows_.value(layout_.length, parse_length, std::int64_t{0}),
                        .is_open = true});
      case TableLayout::Lengths::ranges:
        break;
    }
    const std::optional<WrittenRange> range = written_range(rows_.text(layout_.length));
    if (range) return checked(*range);
    complain_of_range();
    return {0, 0, 0};
  }

  // Of two bins that meet, as 0-1024 and 1024-2048 do, the lower one has the length where they meet. No document is
  // empty, so that a lower end of 0 is 1.
  LengthBin checked(const WrittenRange& range) {
    const bool meets = range.is_open && !bins_.empty() && range.lower == last_;
    LengthBin bin{range.lower + (range.without_lower || meets ? 1 : 0), range.upper - (range.without_upper ? 1 : 0), 0};
    bin.lower = std::max<std::int64_t>(bin.lower, range.lower == 0 ? 1 : 0);
    if (bin.lower >= 1 && bin.upper >= bin.lower && bin.upper <= longest_length) return bin;
    if (layout_.lengths == TableLayout::Lengths::ranges || range.upper > 0) complain_of_range();
    return {0, 0, 0};
  }

  void complain_of_range() {
    const bool ends = layout_.lengths == TableLayout::Lengths::ends;
    const std::string& text = rows_.text(layout_.length);
    const bool has_no_end = text.ends_with('+') || text.starts_with('>') || text.find("inf") != std::string::npos;
    rows_.add(layout_.length,
              ends ? fmt::format("{} to {} is not a range of lengths from 1 to 2^40", rows_.text(layout_.lower), text)
                   : fmt::format("\"{}\" is not a range of lengths from 1 to 2^40", text),
              has_no_end ? "write where it ends: the longest document"
              : ends     ? ""
                         : range_help);
  }

  double weight_of_row() {
    const double written = rows_.value(layout_.weight, parse_share, 0.0);
    if (!layout_.is_cumulative) return written;
    const double before = std::exchange(cumulated_, written);
    if (written < before) {
      rows_.add(layout_.weight, fmt::format("{} is below {}, the one before it", rows_.text(layout_.weight), before),
                "documents that are at most as long as a length do not become fewer with longer ones");
    }
    return std::max(0.0, written - before);
  }

  // Shares end at 1 or 100; counts end anywhere.
  void check_complete() {
    constexpr double most_rounding = 0.01;
    const bool is_share = cumulated_ < 1 - most_rounding;
    if (is_share) {
      rows_.add_unless_wrong(fmt::format("the last cumulative share is {}: longer documents are missing", cumulated_),
                             "end with the longest document, of which the share is 1");
    }
  }

  void check(const LengthBin& bin) {
    const bool has_lower = layout_.lengths != TableLayout::Lengths::uppers;
    if (has_lower && bin.lower <= last_) {
      rows_.add(layout_.length,
                fmt::format("the range begins at {}, but the one before it ends at {}", bin.lower, last_),
                "ranges ascend and do not overlap");
    }
    if (!has_lower && bin.upper <= last_) {
      rows_.add(layout_.length, fmt::format("the upper end {} is not above {}, the one before it", bin.upper, last_));
    }
  }

  // Rows of single lengths have any order, and several may have one length.
  void join_equal_lengths() {
    std::stable_sort(bins_.begin(), bins_.end(),
                     [](const LengthBin& a, const LengthBin& b) { return a.lower < b.lower; });
    std::size_t kept = 0;
    for (const LengthBin& bin : bins_) {
      if (kept > 0 && bins_[kept - 1].lower == bin.lower) {
        bins_[kept - 1].weight += bin.weight;
      } else {
        bins_[kept++] = bin;
      }
    }
    bins_.resize(kept);
  }

  TableRows rows_;
  const TableLayout layout_;
  std::int64_t last_ = 0;  // end of the previous bin
  double cumulated_ = 0;
  std::vector<LengthBin> bins_;
};

// 0.5, 50, 50% and p50 are the same quantile.
Parsed<double> parse_quantile(std::string_view text) {
  const bool is_named = text.size() > 1 && (text.front() == 'p' || text.front() == 'P');
  return parse_share(is_named ? text.substr(1) : text);
}

/// Reads the rows of a quantile table.
class QuantileReader {
 public:
  QuantileReader(const std::filesystem::path& path, const TableLayout& layout)
      : rows_(path), layout_(layout), is_fraction_(rows_.name(layout.weight).starts_with("quantile")) {}

  std::vector<QuantilePoint> read() {
    while (rows_.next()) take_row();
    const double all = in_percent() ? 100 : 1;
    if (!points_.empty() && points_.back().quantile < all) {
      rows_.add_unless_wrong(fmt::format("the last quantile is not {}", all),
                             "end with a row of it, which has the longest length");
    }
    if (points_.size() == 1) rows_.add_unless_wrong("a quantile table has at least two rows");
    rows_.finish(points_.empty());
    for (QuantilePoint& point : points_) point.quantile /= all;
    return std::move(points_);
  }

 private:
  void take_row() {
    const std::size_t quantile = layout_.weight;
    const std::string& text = rows_.text(quantile);
    has_percent_ = has_percent_ || text.ends_with('%') || text.starts_with('p') || text.starts_with('P');
    const QuantilePoint point{rows_.value(quantile, parse_quantile, 0.0),
                              rows_.value(layout_.length, parse_length, std::int64_t{0})};
    if (points_.empty() && point.quantile != 0) {
      rows_.add(quantile, "the first quantile is not 0", "begin with a row of it, which has the shortest length");
    }
    if (!points_.empty() && point.quantile < points_.back().quantile) {
      rows_.add(quantile,
                fmt::format("the quantile {} is below {}, the one before it", point.quantile, points_.back().quantile));
    }
    if (point.quantile > 100 || (is_fraction_ && !has_percent_ && point.quantile > 1)) {
      rows_.add(quantile, fmt::format("the quantile {} is above {}", point.quantile, is_fraction_ ? 1 : 100),
                is_fraction_ ? "a column of the name percentile goes from 0 to 100" : "");
    }
    if (!points_.empty() && point.length > 0 && point.length < points_.back().length) {
      rows_.add(layout_.length,
                fmt::format("the length {} is below {}, the one before it", point.length, points_.back().length));
    }
    points_.push_back(point);
  }

  [[nodiscard]] bool in_percent() const {
    if (has_percent_ || is_fraction_) return has_percent_;
    return std::any_of(points_.begin(), points_.end(), [](const auto& point) { return point.quantile > 1; });
  }

  TableRows rows_;
  const TableLayout layout_;
  const bool is_fraction_;    // The column says that its quantiles go from 0 to 1.
  bool has_percent_ = false;  // A row does.
  std::vector<QuantilePoint> points_;
};

}  // namespace

std::vector<LengthBin> read_histogram(const std::filesystem::path& path) {
  return HistogramReader(path, table_of(path, TraceFormat::histogram)).read();
}

std::vector<QuantilePoint> read_quantiles(const std::filesystem::path& path) {
  return QuantileReader(path, table_of(path, TraceFormat::quantiles)).read();
}

std::vector<TokenShareClass> read_mixture(const std::filesystem::path& path) {
  const TableLayout layout = table_of(path, TraceFormat::mixture);
  TableRows rows(path);
  std::vector<TokenShareClass> classes;
  while (rows.next()) {
    const TokenShareClass part{rows.value(layout.length, parse_count, std::int64_t{0}),
                               rows.value(layout.weight, parse_weight, 0.0)};
    if (!classes.empty() && part.edge <= classes.back().edge) {
      rows.add(layout.length,
               fmt::format("the edge {} is not above {}, the one before it", part.edge, classes.back().edge));
    }
    classes.push_back(part);
  }
  rows.finish(classes.empty());
  return classes;
}

}  // namespace hdpsim
