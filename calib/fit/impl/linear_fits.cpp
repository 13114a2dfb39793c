#include "calib/fit/impl/linear_fits.h"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/quantity_limits.h"
#include "sim/base/quantity_text.h"
#include "sim/cost/fitted_transfer.h"

namespace hdpsim::calib {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Least squares over the chosen columns; the others stay zero.
VectorXd over_columns(const MatrixXd& a, const VectorXd& b, const std::vector<Index>& columns) {
  VectorXd x = VectorXd::Zero(a.cols());
  if (columns.empty()) return x;
  MatrixXd chosen(a.rows(), static_cast<Index>(columns.size()));
  for (std::size_t j = 0; j < columns.size(); ++j) chosen.col(static_cast<Index>(j)) = a.col(columns[j]);
  const VectorXd solved = chosen.colPivHouseholderQr().solve(b);
  for (std::size_t j = 0; j < columns.size(); ++j) x(columns[j]) = solved(static_cast<Index>(j));
  return x;
}

/// Columns are scaled to length 1, so that one tolerance serves all.
class ActiveSet {
 public:
  ActiveSet(const MatrixXd& a, const VectorXd& b) : a_(a), b_(b), x_(VectorXd::Zero(a.cols())) {}

  VectorXd solve() {
    const Index most_rounds = 3 * a_.cols() + 10;
    for (Index round = 0; round < most_rounds; ++round) {
      const Index entering = steepest();
      if (entering < 0) break;
      active_.push_back(entering);
      move_to_optimum();
    }
    return x_;
  }

 private:
  // The idle column along which the error falls fastest; -1 if it falls along none.
  [[nodiscard]] Index steepest() const {
    constexpr double tolerance = 1e-10;
    const VectorXd gradient = a_.transpose() * (b_ - a_ * x_);
    Index best = -1;
    for (Index j = 0; j < a_.cols(); ++j) {
      if (std::find(active_.begin(), active_.end(), j) != active_.end()) continue;
      if (gradient(j) > tolerance * b_.norm() && (best < 0 || gradient(j) > gradient(best))) best = j;
    }
    return best;
  }

  // Moves towards the optimum of the active columns, and drops those that would turn negative on the way.
  void move_to_optimum() {
    while (!active_.empty()) {
      const VectorXd optimum = over_columns(a_, b_, active_);
      double step = 1;
      for (const Index j : active_) {
        if (optimum(j) <= 0) step = std::min(step, x_(j) / (x_(j) - optimum(j)));
      }
      x_ += step * (optimum - x_);
      if (step >= 1) return;
      const auto idle = [&](Index j) { return optimum(j) <= 0 && x_(j) <= 1e-14; };
      for (const Index j : active_) {
        if (idle(j)) x_(j) = 0;
      }
      const auto kept = std::remove_if(active_.begin(), active_.end(), idle);
      if (kept == active_.end()) return;
      active_.erase(kept, active_.end());
    }
  }

  const MatrixXd& a_;
  const VectorXd& b_;
  VectorXd x_;
  std::vector<Index> active_;
};

VectorXd non_negative(const MatrixXd& a, const VectorXd& b) {
  VectorXd scale = a.colwise().norm();
  for (Index j = 0; j < scale.size(); ++j) {
    if (scale(j) == 0) scale(j) = 1;
  }
  const MatrixXd scaled = a * scale.cwiseInverse().asDiagonal();
  return ActiveSet(scaled, b).solve().cwiseQuotient(scale);
}

/// Square roots of Huber's weights, by the size of an error over the typical one.
VectorXd huber_roots(const VectorXd& errors) {
  constexpr double efficient = 1.345;  // 95 % efficiency on normal errors
  constexpr double deviation_of_median = 1.4826;
  constexpr double least = 1e-6;  // exact laws have no errors
  std::vector<double> sizes(errors.size());
  for (Index i = 0; i < errors.size(); ++i) sizes[static_cast<std::size_t>(i)] = std::abs(errors(i));
  const auto middle = sizes.begin() + std::ssize(sizes) / 2;
  std::nth_element(sizes.begin(), middle, sizes.end());
  const double limit = std::max(least, efficient * deviation_of_median * *middle);
  return errors.unaryExpr(
      [&](double error) { return std::abs(error) <= limit ? 1 : std::sqrt(limit / std::abs(error)); });
}

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

Bandwidth bandwidth_of(double seconds_per_byte) {
  const auto [slowest, fastest] = limits::bandwidth;
  const auto least_cost = 1 / static_cast<double>(fastest.bytes_per_second());
  const auto rate = Bandwidth::bytes_per_second(std::llround(1 / std::max(seconds_per_byte, least_cost)));
  return std::clamp(rate, slowest, fastest);
}

FlopRate rate_of(double flops_per_second) {
  constexpr double giga = 1e9;
  const auto rate = parse_flop_rate(fmt::format("{:.7g} GFLOP/s", flops_per_second / giga)).value;
  HDPSIM_CHECK(rate.has_value(), "a rate of {} FLOP/s", flops_per_second);
  return *rate;
}

std::optional<Spread> spread_of(const Timing& timing) {
  if (timing.runs < 1 || !(timing.p10_s > 0)) return std::nullopt;
  return Spread{Duration::seconds(timing.p10_s), Duration::seconds(timing.p90_s), timing.runs};
}

std::vector<double> relative_least_squares(const Equations& equations) {
  constexpr int rounds = 5;
  const auto samples = static_cast<Index>(equations.seconds.size());
  if (samples == 0) return {};
  const auto terms = static_cast<Index>(equations.features.front().size());
  MatrixXd a(samples, terms);
  for (Index i = 0; i < samples; ++i) {
    const auto row = static_cast<std::size_t>(i);
    for (Index j = 0; j < terms; ++j) {
      a(i, j) = equations.features[row][static_cast<std::size_t>(j)] / equations.seconds[row];
    }
  }
  const VectorXd ones = VectorXd::Ones(samples);
  VectorXd x = non_negative(a, ones);
  for (int round = 0; round < rounds && samples > terms + 1; ++round) {
    const VectorXd roots = huber_roots(a * x - ones);
    x = non_negative(roots.asDiagonal() * a, roots);
  }
  return {x.data(), x.data() + x.size()};
}

double evaluate(const std::vector<double>& coefficients, const std::vector<double>& features) {
  return std::inner_product(coefficients.begin(), coefficients.end(), features.begin(), 0.0);
}

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
