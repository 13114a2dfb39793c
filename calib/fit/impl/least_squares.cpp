#include "calib/fit/impl/least_squares.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>

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

}  // namespace

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

}  // namespace hdpsim::calib
