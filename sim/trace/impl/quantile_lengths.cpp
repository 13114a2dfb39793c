#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/diagnostic.h"
#include "sim/trace/length_distribution.h"

namespace hdpsim {
namespace {

class QuantileLengths : public LengthDistribution {
 public:
  explicit QuantileLengths(const std::vector<QuantilePoint>& table)
      : shortest_(table.front().length), longest_(table.back().length) {
    for (const QuantilePoint& point : table) {
      points_.push_back({point.quantile, std::log(static_cast<double>(point.length))});
    }
  }

  [[nodiscard]] std::int64_t quantile(double u) const override {
    const auto above = std::upper_bound(points_.begin() + 1, points_.end() - 1, u,
                                        [](double value, const Point& point) { return value < point.quantile; });
    const Point& a = *(above - 1);
    const Point& b = *above;
    const double inside = b.quantile > a.quantile ? (u - a.quantile) / (b.quantile - a.quantile) : 1;
    const double length = std::exp(a.log_length + inside * (b.log_length - a.log_length));
    return std::clamp(static_cast<std::int64_t>(std::llround(length)), shortest_, longest_);
  }

 private:
  struct Point {
    double quantile;
    double log_length;
  };
  std::vector<Point> points_;
  std::int64_t shortest_;
  std::int64_t longest_;
};

void check_table(const std::vector<QuantilePoint>& table, Diagnostics& problems) {
  if (table.size() < 2 || table.front().quantile != 0 || table.back().quantile != 1) {
    problems.error({}, "a quantile table begins at quantile 0 and ends at quantile 1");
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].length < 1 || table[i].length > longest_length) {
      problems.error(
          {}, fmt::format("length {} at quantile {} is not within 1 to 2^40", table[i].length, table[i].quantile));
    }
    if (i > 0 && !(table[i].quantile >= table[i - 1].quantile)) {
      problems.error({}, fmt::format("quantile {} comes after {}", table[i].quantile, table[i - 1].quantile));
    }
    if (i > 0 && table[i].length < table[i - 1].length) {
      problems.error({}, fmt::format("length {} at quantile {} is below {} at quantile {}", table[i].length,
                                     table[i].quantile, table[i - 1].length, table[i - 1].quantile));
    }
  }
}

}  // namespace

LengthDistributionPtr make_distribution(const std::vector<QuantilePoint>& table) {
  Diagnostics problems;
  check_table(table, problems);
  problems.throw_if_any();
  return std::make_shared<QuantileLengths>(table);
}

}  // namespace hdpsim
