#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/quantity_text.h"
#include "sim/trace/impl/readers.h"
#include "sim/trace/impl/table_layout.h"
#include "sim/trace/impl/table_rows.h"

namespace hdpsim {
namespace {

constexpr const char* range_help = "write a range as \"[2049, 4096]\" or 2049-4096";

/// The ends of a range as they are written.
struct WrittenRange {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  bool without_lower = false;  ///< "(1024, 2048]"
  bool without_upper = false;  ///< "[1024, 2048)"
  bool is_open = false;        ///< No bracket says whether the ends belong to it.
};

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

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

  // Rows of single lengths have any order, and a length may stand in several.
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

}  // namespace

std::vector<LengthBin> read_histogram(const std::filesystem::path& path) {
  return HistogramReader(path, table_of(path, TraceFormat::histogram)).read();
}

}  // namespace hdpsim
