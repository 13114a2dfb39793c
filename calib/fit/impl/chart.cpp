#include "calib/fit/impl/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace hdpsim::calib {
namespace {

/// A grid of characters.
class Canvas {
 public:
  Canvas(int columns, int rows)
      : lines_(static_cast<std::size_t>(rows), std::string(static_cast<std::size_t>(columns), ' ')) {}

  char& at(int column, int row) {
    std::string& line = lines_.at(static_cast<std::size_t>(std::clamp(row, 0, static_cast<int>(lines_.size()) - 1)));
    return line.at(static_cast<std::size_t>(std::clamp(column, 0, static_cast<int>(line.size()) - 1)));
  }
  [[nodiscard]] std::string line(int row) const {
    std::string text = lines_.at(static_cast<std::size_t>(row));
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  std::vector<std::string> lines_;
};

void mark(char& cell, char with) {
  cell = cell == ' ' || cell == with ? with : '@';
}

}  // namespace

std::string chart(const std::vector<ChartPoint>& points, const ChartFrame& frame) {
  if (points.empty()) return "";
  const auto [smallest, largest] = std::minmax_element(
      points.begin(), points.end(), [](const ChartPoint& a, const ChartPoint& b) { return a.size < b.size; });
  double top = 0;
  for (const ChartPoint& point : points) top = std::max({top, point.measured, point.fitted});
  constexpr int label_columns = 10;
  const int columns = std::max(20, frame.columns - label_columns - 2);
  const double least = smallest->size;
  const double span = std::max(1e-9, std::log2(largest->size / least));
  const auto column = [&](double size) {
    return static_cast<int>(std::lround(std::log2(size / least) / span * (columns - 1)));
  };
  const auto row = [&](double value) {
    return frame.rows - 1 - static_cast<int>(std::lround(value / top * (frame.rows - 1)));
  };
  Canvas canvas(columns, frame.rows);
  for (const ChartPoint& point : points) mark(canvas.at(column(point.size), row(point.fitted)), '*');
  for (const ChartPoint& point : points) mark(canvas.at(column(point.size), row(point.measured)), 'o');

  std::string text = fmt::format("{}   o sample  * fit  @ both\n", frame.title);
  for (int i = 0; i < frame.rows; ++i) {
    const bool labelled = i == 0 || i == frame.rows - 1;
    const double value = i == 0 ? top : 0;
    text += fmt::format("{:>{}} |{}\n", labelled ? fmt::format("{:.3g}", value) : "", label_columns, canvas.line(i));
  }
  const std::string left = binary_text(smallest->size);
  const std::string right = fmt::format("{} {}", binary_text(largest->size), frame.size_unit);
  const int gap = std::max(1, columns - static_cast<int>(left.size() + right.size()));
  text += fmt::format("{:>{}} +{}{:{}}{}\n", frame.value_unit, label_columns, left, "", gap, right);
  return text;
}

std::string box_plot(const std::vector<double>& deciles, double most, int columns) {
  std::string line(static_cast<std::size_t>(columns), ' ');
  const auto column = [&](double value) {
    const double share = (std::clamp(value, -most, most) + most) / (2 * most);
    return static_cast<std::size_t>(std::lround(share * (columns - 1)));
  };
  const std::size_t middle = column(0);
  if (deciles.size() >= 3) {
    const double low = deciles.front();
    const double high = deciles.back();
    std::fill(line.begin() + static_cast<std::ptrdiff_t>(column(low)),
              line.begin() + static_cast<std::ptrdiff_t>(column(high)) + 1, '-');
    std::fill(line.begin() + static_cast<std::ptrdiff_t>(column(deciles[1])),
              line.begin() + static_cast<std::ptrdiff_t>(column(deciles[deciles.size() - 2])) + 1, '=');
    if (low < -most) line.front() = '<';
    if (high > most) line.back() = '>';
  }
  line[middle] = '|';
  return line;
}

std::string binary_text(double number) {
  constexpr std::array<const char*, 5> prefixes = {"", "Ki", "Mi", "Gi", "Ti"};
  constexpr double kibi = 1024;
  std::size_t power = 0;
  while (number >= kibi && power + 1 < prefixes.size()) {
    number /= kibi;
    ++power;
  }
  return fmt::format("{:.3g}{}", number, prefixes.at(power));
}

}  // namespace hdpsim::calib
