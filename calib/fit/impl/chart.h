#pragma once

#include <string>
#include <vector>

namespace hdpsim::calib {

/// A sample and the fit's prediction, at one size.
struct ChartPoint {
  double size = 0;
  double measured = 0;
  double fitted = 0;
};

struct ChartFrame {
  std::string title;
  std::string size_unit;
  std::string value_unit;
  int columns = 80;
  int rows = 10;
};

/// A scatter plot in text, sizes on a logarithmic scale, values from zero: `o` a sample, `*` the fit, `@` both in one
/// cell. Empty without points.
[[nodiscard]] std::string chart(const std::vector<ChartPoint>& points, const ChartFrame& frame);

/// A box plot in one line over -most ... +most: dashes from the least to the greatest decile, a box from the second to
/// the second last, `|` at zero. Values beyond the ends are drawn as < or >.
[[nodiscard]] std::string box_plot(const std::vector<double>& deciles, double most, int columns);

/// The number in binary multiples: 4096 as "4Ki", 3.2e6 as "3.05Mi", 100 as "100".
[[nodiscard]] std::string binary_text(double number);

}  // namespace hdpsim::calib
