#include <fmt/format.h>

#include <algorithm>

#include "sim/trace/impl/readers.h"
#include "sim/trace/impl/table_layout.h"
#include "sim/trace/impl/table_rows.h"

namespace hdpsim {
namespace {

// 0.5, 50, 50% and p50 are the same quantile.
Parsed<double> parse_quantile(std::string_view text) {
  const bool is_named = text.size() > 1 && (text.front() == 'p' || text.front() == 'P');
  return parse_share(is_named ? text.substr(1) : text);
}

/// Reads the rows of a quantile table.
class QuantileReader {
 public:
  QuantileReader(const std::filesystem::path& path, const TableLayout& layout)
      : rows_(path), layout_(layout), of_one_(rows_.name(layout.weight).starts_with("quantile")) {}

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
    if (point.quantile > 100 || (of_one_ && !has_percent_ && point.quantile > 1)) {
      rows_.add(quantile, fmt::format("the quantile {} is above {}", point.quantile, of_one_ ? 1 : 100),
                of_one_ ? "a column of the name percentile goes from 0 to 100" : "");
    }
    if (!points_.empty() && point.length > 0 && point.length < points_.back().length) {
      rows_.add(layout_.length,
                fmt::format("the length {} is below {}, the one before it", point.length, points_.back().length));
    }
    points_.push_back(point);
  }

  [[nodiscard]] bool in_percent() const {
    if (has_percent_ || of_one_) return has_percent_;
    return std::any_of(points_.begin(), points_.end(), [](const auto& point) { return point.quantile > 1; });
  }

  TableRows rows_;
  const TableLayout layout_;
  const bool of_one_;         // The column says that its quantiles go from 0 to 1.
  bool has_percent_ = false;  // A row does.
  std::vector<QuantilePoint> points_;
};

}  // namespace

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
