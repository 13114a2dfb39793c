#include "sim/fit/impl/posterior.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_chosen = 2;

std::vector<std::vector<double>> covariance_of(const RobustFit& fit) {
  std::vector<std::vector<double>> covariance = fit.correlations;
  for (std::size_t i = 0; i < covariance.size(); ++i) {
    for (std::size_t j = 0; j < covariance.size(); ++j) covariance[i][j] *= fit.deviations[i] * fit.deviations[j];
  }
  return covariance;
}

}  // namespace

Posterior::Posterior(std::vector<std::vector<double>> covariance, double row_variance)
    : covariance_(std::move(covariance)), row_variance_(row_variance) {
  HDPSIM_CHECK(row_variance_ > 0, "rows with a variance of {}", row_variance_);
}

Posterior::Posterior(const RobustFit& fit) : Posterior(covariance_of(fit), hdpsim::row_variance(fit.scale)) {}

std::vector<double> Posterior::times(const std::vector<double>& slopes) const {
  HDPSIM_CHECK(slopes.size() == coordinates(), "{} slopes of {} coordinates", slopes.size(), coordinates());
  std::vector<double> product;
  product.reserve(coordinates());
  for (const std::vector<double>& row : covariance_) {
    product.push_back(std::inner_product(row.begin(), row.end(), slopes.begin(), 0.0));
  }
  return product;
}

Posterior Posterior::with_row(const std::vector<double>& slopes) const {
  const std::vector<double> along = times(slopes);
  const double variance = row_variance_ + std::inner_product(along.begin(), along.end(), slopes.begin(), 0.0);
  Posterior narrower = *this;
  for (std::size_t i = 0; i < coordinates(); ++i) {
    for (std::size_t j = 0; j < coordinates(); ++j) narrower.covariance_[i][j] -= along[i] * along[j] / variance;
  }
  return narrower;
}

double Posterior::deviation(std::size_t coordinate) const {
  return std::sqrt(covariance_.at(coordinate)[coordinate]);
}

double Posterior::deviation_along(const std::vector<double>& slopes) const {
  const std::vector<double> along = times(slopes);
  return std::sqrt(std::max(0.0, std::inner_product(along.begin(), along.end(), slopes.begin(), 0.0)));
}

NextRows choose_next_rows(const Posterior& known, const std::vector<std::vector<double>>& slopes,
                          const PosteriorWidth& width) {
  NextRows next;
  next.now = width(known);
  for (const std::vector<double>& row : slopes) next.after_each.push_back(width(known.with_row(row)));
  next.order.resize(slopes.size());
  std::iota(next.order.begin(), next.order.end(), std::size_t{0});
  std::stable_sort(next.order.begin(), next.order.end(),
                   [&](std::size_t a, std::size_t b) { return next.after_each[a] < next.after_each[b]; });
  Posterior then = known;
  while (next.chosen.size() < std::min(most_chosen, slopes.size())) {
    std::size_t best = slopes.size();
    double narrowest = 0;
    for (const std::size_t row : next.order) {
      if (std::find(next.chosen.begin(), next.chosen.end(), row) != next.chosen.end()) continue;
      const double after = width(then.with_row(slopes[row]));
      if (best < slopes.size() && after >= narrowest) continue;
      best = row;
      narrowest = after;
    }
    then = then.with_row(slopes[best]);
    next.chosen.push_back(best);
    next.after.push_back(narrowest);
  }
  return next;
}

}  // namespace hdpsim
