#include "sim/fit/robust_fit.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/trust/student.h"

namespace hdpsim {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double clip = 1.345;         // of Huber's rho: 95 % efficiency for normal residuals
constexpr double clipped = 0.71016;    // E[min(u^2, clip^2)] of a normal u: its scale comes out as its deviation
constexpr double quadratic = 0.82137;  // share of normal residuals within the clip
constexpr double efficiency = quadratic * quadratic / clipped;
constexpr double imagined_rows = 1;      // with usual_residual
constexpr double least_scale = 1e-4;     // figures of logs have at most so many digits
constexpr double far_out = 3;            // standard deviations
constexpr double slope_step = 1.0 / 20;  // of a prior's width
constexpr double last_step = 1.0 / 20;   // of a posterior deviation
constexpr int normal_freedom = 999;      // as good as a normal distribution

VectorXd residuals_at(const FitResiduals& residuals, const VectorXd& x) {
  const std::vector<double> values = residuals({x.begin(), x.end()});
  for (const double value : values) HDPSIM_CHECK(std::isfinite(value), "a residual of {}", value);
  return Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
}

// Slopes at `x`, where the residuals are `r`.
MatrixXd slopes(const FitResiduals& residuals, const std::vector<FitCoordinate>& coordinates, const VectorXd& x,
                const VectorXd& r) {
  MatrixXd result(r.size(), x.size());
  for (Index i = 0; i < x.size(); ++i) {
    const FitCoordinate& c = coordinates[static_cast<std::size_t>(i)];
    double difference = std::min(slope_step * c.width, (c.most - c.least) / 2);
    if (x(i) + difference > c.most) difference = -difference;
    VectorXd beside = x;
    beside(i) += difference;
    result.col(i) = (residuals_at(residuals, beside) - r) / difference;
  }
  return result;
}

std::vector<std::vector<double>> rows_of(const MatrixXd& matrix) {
  std::vector<std::vector<double>> rows;
  for (Index row = 0; row < matrix.rows(); ++row) rows.emplace_back(matrix.row(row).begin(), matrix.row(row).end());
  return rows;
}

/// The state of a search: a point, what it costs, and the normal equations there.
class Search {
 public:
  Search(const FitResiduals& residuals, const std::vector<FitCoordinate>& coordinates)
      : residuals_of_(residuals), coordinates_(coordinates), n_(static_cast<Index>(coordinates.size())) {
    HDPSIM_CHECK(n_ > 0, "a fit without coordinates");
    x_ = VectorXd(n_);
    prior_ = VectorXd(n_);
    for (Index i = 0; i < n_; ++i) {
      const FitCoordinate& c = at(i);
      HDPSIM_CHECK(c.width > 0 && c.least < c.most && c.start >= c.least && c.start <= c.most,
                   "a coordinate at {} from {} to {}, width {}", c.start, c.least, c.most, c.width);
      x_(i) = c.start;
      prior_(i) = 1 / (c.width * c.width);
    }
    r_ = evaluate(x_);
    HDPSIM_CHECK(r_.size() > 0, "a fit without rows");
    determined_ = 0;
    scale_ = scale_of(r_);
  }

  RobustFit run(int most_iterations) {
    RobustFit fit;
    for (; fit.iterations < most_iterations && !fit.converged; ++fit.iterations) {
      differentiate();
      fit.converged = !step();
    }
    fit.at.assign(x_.begin(), x_.end());
    fit.residuals.assign(r_.begin(), r_.end());
    fit.jacobian = rows_of(slopes_);
    describe(fit);
    return fit;
  }

 private:
  [[nodiscard]] const FitCoordinate& at(Index i) const { return coordinates_[static_cast<std::size_t>(i)]; }

  [[nodiscard]] VectorXd evaluate(const VectorXd& x) const { return residuals_at(residuals_of_, x); }

  // Huber's proposal 2, with one imagined row.
  [[nodiscard]] double scale_of(const VectorXd& r) const {
    constexpr int rounds = 100;
    const double rows = std::max(0.0, static_cast<double>(r.size()) - determined_) + imagined_rows;
    double scale = std::sqrt(r.squaredNorm() / static_cast<double>(r.size())) + usual_residual;
    for (int round = 0; round < rounds; ++round) {
      double sum = clipped * imagined_rows * usual_residual * usual_residual;
      for (const double residual : r) sum += std::pow(std::min(std::abs(residual), clip * scale), 2);
      scale = std::max(least_scale, std::sqrt(sum / (clipped * rows)));
    }
    return scale;
  }

  [[nodiscard]] double cost(const VectorXd& x, const VectorXd& r) const {
    double sum = 0;
    for (const double residual : r) {
      const double u = std::abs(residual) / scale_;
      sum += u <= clip ? u * u / 2 : clip * (u - clip / 2);
    }
    sum *= quadratic / clipped;
    for (Index i = 0; i < n_; ++i) sum += std::pow(x(i) - at(i).start, 2) * prior_(i) / 2;
    return sum;
  }

  void differentiate() { slopes_ = slopes(residuals_of_, coordinates_, x_, r_); }

  // J'WJ c / s^2 and the gradient, both with the prior; `weights` of 1: the curvature of the posterior.
  [[nodiscard]] MatrixXd curvature(const VectorXd& weights, double factor) const {
    MatrixXd sum = slopes_.transpose() * weights.asDiagonal() * slopes_ * (factor / (scale_ * scale_));
    sum.diagonal() += prior_;
    return sum;
  }

  // Moves to a better point. False if the point stands still.
  bool step() {
    constexpr int most_tries = 10;
    VectorXd weights(r_.size());
    for (Index row = 0; row < r_.size(); ++row) {
      const double u = std::abs(r_(row)) / scale_;
      weights(row) = u <= clip ? 1 : clip / u;
    }
    constexpr double factor = quadratic / clipped;
    const MatrixXd curved = curvature(weights, factor);
    VectorXd gradient = slopes_.transpose() * (weights.asDiagonal() * r_) * (factor / (scale_ * scale_));
    for (Index i = 0; i < n_; ++i) gradient(i) += (x_(i) - at(i).start) * prior_(i);
    const double before = cost(x_, r_);
    for (int tried = 0; tried < most_tries; ++tried) {
      const VectorXd moved = moved_by(curved, gradient);
      const VectorXd difference = moved - x_;
      const double length = std::sqrt(difference.dot(curved * difference));
      const VectorXd residuals = evaluate(moved);
      if (cost(moved, residuals) <= before) {
        x_ = moved;
        r_ = residuals;
        damping_ = damping_ < 1e-3 ? 0 : damping_ / 10;
        const MatrixXd rows = curvature(VectorXd::Ones(r_.size()), efficiency);
        determined_ = static_cast<double>(n_) - rows.ldlt().solve(MatrixXd(prior_.asDiagonal())).trace();
        scale_ = scale_of(r_);
        return length > last_step;
      }
      if (length < last_step) return false;
      damping_ = std::max(1e-2, damping_ * 10);
    }
    return false;
  }

  // Newton's step, damped; coordinates that would leave their range stay at its end.
  [[nodiscard]] VectorXd moved_by(const MatrixXd& curved, const VectorXd& gradient) const {
    std::vector<Index> free;
    for (Index i = 0; i < n_; ++i) {
      const bool held = (x_(i) <= at(i).least && gradient(i) > 0) || (x_(i) >= at(i).most && gradient(i) < 0);
      if (!held) free.push_back(i);
    }
    VectorXd moved = x_;
    if (free.empty()) return moved;
    MatrixXd damped = curved(free, free);
    damped.diagonal() *= 1 + damping_;
    const VectorXd step = damped.ldlt().solve(-gradient(free));
    for (std::size_t k = 0; k < free.size(); ++k) {
      const Index i = free[k];
      moved(i) = std::clamp(x_(i) + step(static_cast<Index>(k)), at(i).least, at(i).most);
    }
    return moved;
  }

  void describe(RobustFit& fit) const {
    const MatrixXd covariance =
        curvature(VectorXd::Ones(r_.size()), efficiency).ldlt().solve(MatrixXd::Identity(n_, n_));
    fit.scale = scale_;
    fit.freedom = std::max(1, static_cast<int>(std::lround(static_cast<double>(r_.size()) - determined_)));
    for (Index i = 0; i < n_; ++i) fit.deviations.push_back(std::sqrt(covariance(i, i)));
    for (Index i = 0; i < n_; ++i) {
      fit.correlations.emplace_back();
      for (Index j = 0; j < n_; ++j) {
        fit.correlations.back().push_back(covariance(i, j) / std::sqrt(covariance(i, i) * covariance(j, j)));
      }
    }
  }

  const FitResiduals& residuals_of_;
  const std::vector<FitCoordinate>& coordinates_;
  Index n_;
  VectorXd x_;
  VectorXd r_;
  VectorXd prior_;  ///< Precisions.
  MatrixXd slopes_;
  double determined_ = 0;  ///< Coordinates that the rows determine, in parts.
  double scale_ = 1;
  double damping_ = 0;
};

}  // namespace

RobustFit robust_fit(const FitResiduals& residuals, const std::vector<FitCoordinate>& coordinates,
                     int most_iterations) {
  return Search(residuals, coordinates).run(most_iterations);
}

std::vector<std::vector<double>> residual_slopes(const FitResiduals& residuals,
                                                 const std::vector<FitCoordinate>& coordinates,
                                                 const std::vector<double>& at) {
  HDPSIM_CHECK(at.size() == coordinates.size(), "a point of {} values for {} coordinates", at.size(),
               coordinates.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    HDPSIM_CHECK(at[i] >= coordinates[i].least && at[i] <= coordinates[i].most, "{} is not from {} to {}", at[i],
                 coordinates[i].least, coordinates[i].most);
  }
  const VectorXd x = Eigen::Map<const VectorXd>(at.data(), static_cast<Index>(at.size()));
  return rows_of(slopes(residuals, coordinates, x, residuals_at(residuals, x)));
}

double row_variance(double scale) {
  return scale * scale / efficiency;
}

double interval_reach(double deviation, double prior_deviation, int freedom) {
  return deviation < undetermined_share * prior_deviation ? student_quantile(1 - interval_tail, freedom)
                                                          : prior_reach();
}

double prior_reach() {
  return student_quantile(1 - interval_tail, normal_freedom);
}

bool is_outlier(double residual, double scale) {
  return std::abs(residual) > far_out * scale;
}

}  // namespace hdpsim
