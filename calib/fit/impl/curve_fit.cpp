#include "calib/fit/impl/curve_fit.h"

#include <fmt/format.h>

#include <cmath>

#include "calib/fit/impl/least_squares.h"
#include "calib/fit/impl/quantities.h"
#include "sim/cost/fitted_transfer.h"

namespace hdpsim::calib {
namespace {

std::vector<ByteCost> knots(double least, double most, int octaves) {
  std::vector<ByteCost> all = {{Bytes(std::llround(least)), {}}};
  if (octaves == 0) return all;
  const double factor = std::exp2(octaves);
  // The last knot is at the largest size, and no other one close before it.
  double at = least * factor;
  while (at < most / std::sqrt(factor)) {
    all.push_back({Bytes(std::llround(at)), {}});
    at *= factor;
  }
  if (most > least) all.push_back({Bytes(std::llround(most)), {}});
  return all;
}

// The law is linear in the cost of a byte at a knot, or in its increase from a knot on: the feature is the time of a
// curve with one second per byte there, or there and beyond. No coefficient is negative.
std::vector<TransferCurve> unit_curves(const TransferCurve& empty, ByteCosts costs) {
  std::vector<TransferCurve> units(empty.costs.size(), empty);
  for (std::size_t first = 0; first < units.size(); ++first) {
    const std::size_t end = costs == ByteCosts::rising ? units.size() : first + 1;
    for (std::size_t knot = first; knot < end; ++knot) {
      units[first].costs[knot].bandwidth = Bandwidth::bytes_per_second(1);
    }
  }
  return units;
}

}  // namespace

Line fit_line(const std::vector<double>& bytes, const std::vector<double>& seconds) {
  if (bytes.empty()) return {};
  Equations equations{{}, seconds};
  for (const double size : bytes) equations.features.push_back({1, size});
  const std::vector<double> coefficients = relative_least_squares(equations);
  return {coefficients[0], coefficients[1]};
}

TransferCurve fit_curve(const Transfers& transfers, double least, double most, int octaves_between_knots,
                        ByteCosts costs) {
  TransferCurve curve{{}, knots(least, most, octaves_between_knots)};
  if (transfers.bytes.empty()) return curve;
  const std::vector<TransferCurve> units = unit_curves(curve, costs);
  Equations equations{{}, transfers.seconds};
  for (const double bytes : transfers.bytes) {
    std::vector<double>& features = equations.features.emplace_back(1, 1.0);
    for (const TransferCurve& unit : units) features.push_back(fitted_seconds(unit, bytes));
  }
  const std::vector<double> coefficients = relative_least_squares(equations);
  curve.latency = Duration::seconds(coefficients.front());
  double risen = 0;
  for (std::size_t knot = 0; knot < curve.costs.size(); ++knot) {
    const double coefficient = coefficients[knot + 1];
    const double cost = costs == ByteCosts::rising ? risen += coefficient : coefficient;
    if (cost > 0) curve.costs[knot].bandwidth = bandwidth_of(cost);
  }
  return curve;
}

std::string curve_form(int octaves_between_knots) {
  if (octaves_between_knots == 0) return "latency + bytes";
  return fmt::format("latency + bytes, a byte's cost by size (every {} octaves)", octaves_between_knots);
}

}  // namespace hdpsim::calib
