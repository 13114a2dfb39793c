#include <fmt/format.h>

#include <charconv>

#include "sim/document/limits.h"
#include "sim/trace/impl/csv_records.h"
#include "sim/trace/impl/readers.h"

namespace hdpsim {
namespace {

/// A CSV whose rows are all needed, with its problems.
class Table {
 public:
  explicit Table(const std::filesystem::path& path) : problems_(path.string()), records_(path, problems_) {}

  CsvRecords& rows() { return records_; }
  /// Reads the next row; false at the end of the file. A table of more than most_table_rows is fatal.
  bool next() {
    if (!records_.next()) return false;
    if (++read_ > most_table_rows) {
      problems_.fail(records_.place(0), fmt::format("more than {} rows describe a distribution", most_table_rows));
    }
    return true;
  }
  FileProblems& problems() { return problems_; }

  /// The first of `names` that is a column; fatal if none is.
  std::size_t column(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (records_.has(name)) return records_.index_of(name);
    }
    std::string columns;
    for (const std::string& name : records_.columns()) columns += (columns.empty() ? "" : ", ") + name;
    problems_.fail(records_.header(), fmt::format("there is no column '{}'", names.front()),
                   fmt::format("the columns are: {}", columns));
  }

  template <class T>
  T value(std::size_t column, Parsed<T> (*parse)(std::string_view), T otherwise) {
    const Parsed<T> parsed = parse(records_.value(column));
    if (!parsed.value) add(column, parsed.error, parsed.help);
    return parsed.value.value_or(otherwise);
  }

  void add(std::size_t column, std::string message, std::string help = {}) {
    problems_.add(records_.place(column), std::move(message), std::move(help));
  }

  /// Checks the table after its last row.
  void finish(bool empty) {
    if (empty && problems_.empty()) problems_.add("the file holds no rows under its header");
    problems_.throw_if_any();
  }

 private:
  FileProblems problems_;
  CsvRecords records_;
  std::int64_t read_ = 0;
};

constexpr const char* range_help = "write a range as \"[2049, 4096]\"";

// "[2049, 4096]"; a lower end of 0 means 1, since no document is empty.
std::optional<LengthBin> parse_range(std::string_view text) {
  const char* const end = text.data() + text.size();
  if (text.size() < 5 || text.front() != '[' || text.back() != ']') return std::nullopt;
  LengthBin bin;
  const auto lower = std::from_chars(text.data() + 1, end, bin.lower);
  if (lower.ec != std::errc{} || lower.ptr == end || *lower.ptr != ',') return std::nullopt;
  const char* second = lower.ptr + 1;
  while (second != end && *second == ' ') ++second;
  const auto upper = std::from_chars(second, end, bin.upper);
  if (upper.ec != std::errc{} || upper.ptr + 1 != end) return std::nullopt;
  if (bin.lower == 0) bin.lower = 1;
  return bin;
}

class HistogramTable {
 public:
  explicit HistogramTable(const std::filesystem::path& path) : table_(path), ranges_(table_.rows().has("range")) {
    edge_ = table_.column(ranges_ ? std::vector<std::string>{"range"} : std::vector<std::string>{"upper", "range"});
    count_ = table_.column({"count", "number"});
  }

  std::vector<LengthBin> read() {
    double all = 0;
    while (table_.next()) {
      LengthBin bin = ranges_ ? range() : LengthBin{last_ + 1, table_.value(edge_, parse_length, std::int64_t{0}), 0};
      bin.weight = table_.value(count_, parse_weight, 0.0);
      all += bin.weight;
      if (bin.upper < 1) continue;  // reported already
      check(bin);
      bins_.push_back(bin);
      last_ = bin.upper;
    }
    if (!bins_.empty() && !(all > 0) && table_.problems().empty()) table_.problems().add("all counts are 0");
    table_.finish(bins_.empty());
    return std::move(bins_);
  }

 private:
  LengthBin range() {
    const auto bin = parse_range(table_.rows().value(edge_));
    if (bin && bin->lower >= 1 && bin->upper >= bin->lower && bin->upper <= longest_length) return *bin;
    table_.add(edge_, fmt::format("\"{}\" is not a range of lengths from 1 to 2^40", table_.rows().value(edge_)),
               range_help);
    return {0, 0, 0};
  }

  void check(const LengthBin& bin) {
    if (ranges_ && bin.lower <= last_) {
      table_.add(edge_, fmt::format("the range begins at {}, but the one before it ends at {}", bin.lower, last_),
                 "ranges ascend and do not overlap");
    }
    if (!ranges_ && bin.upper <= last_) {
      table_.add(edge_, fmt::format("the upper end {} is not above {}, the one before it", bin.upper, last_));
    }
  }

  Table table_;
  bool ranges_;
  std::size_t edge_ = 0;
  std::size_t count_ = 0;
  std::int64_t last_ = 0;  // end of the previous bin
  std::vector<LengthBin> bins_;
};

}  // namespace

std::vector<LengthBin> read_histogram(const std::filesystem::path& path) {
  return HistogramTable(path).read();
}

std::vector<QuantilePoint> read_quantiles(const std::filesystem::path& path) {
  Table table(path);
  const std::size_t quantile = table.column({"quantile"});
  const std::size_t length = table.column({"length"});
  std::vector<QuantilePoint> points;
  while (table.next()) {
    const QuantilePoint point{table.value(quantile, parse_weight, 0.0),
                              table.value(length, parse_length, std::int64_t{0})};
    if (points.empty() && point.quantile != 0) table.add(quantile, "the first quantile is not 0");
    if (!points.empty() && point.quantile < points.back().quantile) {
      table.add(quantile,
                fmt::format("the quantile {} is below {}, the one before it", point.quantile, points.back().quantile));
    }
    if (point.quantile > 1) table.add(quantile, fmt::format("the quantile {} is above 1", point.quantile));
    if (!points.empty() && point.length > 0 && point.length < points.back().length) {
      table.add(length,
                fmt::format("the length {} is below {}, the one before it", point.length, points.back().length));
    }
    points.push_back(point);
  }
  if (!points.empty() && points.back().quantile < 1) table.problems().add("the last quantile is not 1");
  if (points.size() == 1) table.problems().add("a quantile table has at least two rows");
  table.finish(points.empty());
  return points;
}

std::vector<TokenShareClass> read_mixture(const std::filesystem::path& path) {
  Table table(path);
  const std::size_t edge = table.column({"edge"});
  const std::size_t share = table.column({"token_share"});
  std::vector<TokenShareClass> classes;
  while (table.next()) {
    const TokenShareClass part{table.value(edge, parse_count, std::int64_t{0}), table.value(share, parse_weight, 0.0)};
    if (!classes.empty() && part.edge <= classes.back().edge) {
      table.add(edge, fmt::format("the edge {} is not above {}, the one before it", part.edge, classes.back().edge));
    }
    classes.push_back(part);
  }
  table.finish(classes.empty());
  return classes;
}

}  // namespace hdpsim
