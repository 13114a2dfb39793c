#include "sim/trace/impl/lognormal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

using Coefficients = std::array<double, 8>;

// The coefficients of AS 241, lowest power first: of numerators (over; a, c and e there) and denominators (under; b, d
// and f) in the middle, to the sides of it and in the tails.
constexpr Coefficients central_over{3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                                    1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                                    3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr Coefficients central_under{1.0,
                                     4.2313330701600911252e1,
                                     6.8718700749205790830e2,
                                     5.3941960214247511077e3,
                                     2.1213794301586595867e4,
                                     3.9307895800092710610e4,
                                     2.8729085735721942674e4,
                                     5.2264952788528545610e3};
constexpr Coefficients middle_over{1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                   3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                   2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr Coefficients middle_under{1.0,
                                    2.05319162663775882187e0,
                                    1.67638483018380384940e0,
                                    6.89767334985100004550e-1,
                                    1.48103976427480074590e-1,
                                    1.51986665636164571966e-2,
                                    5.47593808499534494600e-4,
                                    1.05075007164441684324e-9};
constexpr Coefficients tail_over{6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                 2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                 2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr Coefficients tail_under{1.0,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};

double polynomial(const Coefficients& coefficients, double x) {
  return std::accumulate(coefficients.rbegin(), coefficients.rend(), 0.0,
                         [x](double sum, double coefficient) { return sum * x + coefficient; });
}

double z_of(double x, double mu, double sigma) {
  return (std::log(x) - mu) / sigma;
}

std::int64_t whole_tokens(double x, std::int64_t min, std::int64_t max) {
  return std::clamp(static_cast<std::int64_t>(std::llround(x)), min, max);
}

class LognormalLengths : public LengthDistribution {
 public:
  explicit LognormalLengths(const Lognormal& p) : range_(rounding_range(p)), min_(p.min), max_(p.max) {}

  [[nodiscard]] std::int64_t quantile(double u) const override { return whole_tokens(range_.quantile(u), min_, max_); }

 private:
  LognormalRange range_;
  std::int64_t min_;
  std::int64_t max_;
};

class LognormalParetoLengths : public LengthDistribution {
 public:
  explicit LognormalParetoLengths(const LognormalPareto& p)
      : body_(p.mu, p.sigma, static_cast<double>(p.min) - 0.5, static_cast<double>(p.tail_from)),
        tail_(p.alpha, static_cast<double>(p.tail_from), static_cast<double>(p.max) + 0.5),
        body_share_(1 - tail_share(p)),
        min_(p.min),
        max_(p.max) {}

  [[nodiscard]] std::int64_t quantile(double u) const override {
    const double x = u < body_share_ ? body_.quantile(u / body_share_)
                                     : tail_.quantile(std::min(1.0, (u - body_share_) / (1 - body_share_)));
    return whole_tokens(x, min_, max_);
  }

 private:
  LognormalRange body_;
  TruncatedPareto tail_;
  double body_share_;
  std::int64_t min_;
  std::int64_t max_;
};

// Below this the inverse of the cumulative distribution has no digits left.
constexpr double least_mass = 1e-9;

}  // namespace

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

double normal_density(double z) {
  return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
}

double normal_quantile(double p) {
  HDPSIM_CHECK(p > 0 && p < 1, "p = {}", p);
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(central_over, r) / polynomial(central_under, r);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  const double z = r <= 5 ? polynomial(middle_over, r - 1.6) / polynomial(middle_under, r - 1.6)
                          : polynomial(tail_over, r - 5) / polynomial(tail_under, r - 5);
  return q < 0 ? -z : z;
}

LognormalRange::LognormalRange(double mu, double sigma, double low, double high)
    : mu_(mu),
      sigma_(sigma),
      low_(low),
      high_(high),
      low_p_(normal_cdf(z_of(low, mu, sigma))),
      high_p_(normal_cdf(z_of(high, mu, sigma))) {}

double LognormalRange::cdf(double x) const {
  if (x <= low_) return 0;
  if (x >= high_) return 1;
  return (normal_cdf(z_of(x, mu_, sigma_)) - low_p_) / mass();
}

double LognormalRange::mean_above(double x) const {
  // E[X; a < X < b] of a lognormal is exp(mu + sigma^2/2) times the mass of (a, b) under mu + sigma^2.
  const double shifted = mu_ + sigma_ * sigma_;
  const double from = std::clamp(x, low_, high_);
  const double share = normal_cdf(z_of(high_, shifted, sigma_)) - normal_cdf(z_of(from, shifted, sigma_));
  return std::exp(mu_ + 0.5 * sigma_ * sigma_) * share / mass();
}

double LognormalRange::quantile(double u) const {
  const double p = low_p_ + u * mass();
  if (!(p > 0)) return low_;
  if (!(p < 1)) return high_;
  return std::clamp(std::exp(mu_ + sigma_ * normal_quantile(p)), low_, high_);
}

LognormalRange rounding_range(const Lognormal& parameters) {
  return {parameters.mu, parameters.sigma, static_cast<double>(parameters.min) - 0.5,
          static_cast<double>(parameters.max) + 0.5};
}

TruncatedPareto::TruncatedPareto(double alpha, double from, double to)
    : alpha_(alpha), from_(from), to_(to), mass_(-std::expm1(alpha * std::log(from / to))) {}

double TruncatedPareto::cdf(double x) const {
  if (x <= from_) return 0;
  if (x >= to_) return 1;
  return -std::expm1(alpha_ * std::log(from_ / x)) / mass_;
}

double TruncatedPareto::mean_above(double x) const {
  // The integral of t f(t) with f(t) = alpha from^alpha t^(-alpha-1) / mass, from x to `to`.
  const double start = std::clamp(x, from_, to_);
  if (std::abs(alpha_ - 1) < 1e-9) return from_ / mass_ * std::log(to_ / start);
  const double power = 1 - alpha_;
  const double ends = std::pow(to_ / from_, power) - std::pow(start / from_, power);
  return alpha_ * from_ * ends / (power * mass_);
}

double TruncatedPareto::quantile(double u) const {
  return std::clamp(from_ * std::exp(-std::log1p(-u * mass_) / alpha_), from_, to_);
}

double tail_share(const LognormalPareto& p) {
  if (p.tail_share) return *p.tail_share;
  const LognormalRange whole = rounding_range({.mu = p.mu, .sigma = p.sigma, .min = p.min, .max = p.max});
  return 1 - whole.cdf(static_cast<double>(p.tail_from));
}

void check_lognormal(const Lognormal& p, Diagnostics& problems) {
  if (!std::isfinite(p.mu)) problems.error({}, "mu is not a number");
  if (!(p.sigma > 0 && p.sigma <= 20)) problems.error({}, fmt::format("sigma {} is not within (0, 20]", p.sigma));
  if (p.min < 1) problems.error({}, fmt::format("min {} is below 1 token", p.min));
  if (p.max > longest_length) problems.error({}, fmt::format("max {} is above 2^40 tokens", p.max));
  if (p.max < p.min) problems.error({}, fmt::format("max {} is below min {}", p.max, p.min));
  if (problems.empty() && rounding_range(p).mass() < least_mass) {
    problems.error(
        {}, fmt::format("no length from {} to {} is likely with mu {} and sigma {}", p.min, p.max, p.mu, p.sigma),
        "mu is the mean of ln(tokens): 6.2 for a median of 500");
  }
}

LengthDistributionPtr make_distribution(const Lognormal& parameters) {
  Diagnostics problems;
  check_lognormal(parameters, problems);
  problems.throw_if_any();
  return std::make_shared<LognormalLengths>(parameters);
}

LengthDistributionPtr make_distribution(const LognormalPareto& p) {
  Diagnostics problems;
  check_lognormal({.mu = p.mu, .sigma = p.sigma, .min = p.min, .max = p.max}, problems);
  if (!(p.alpha > 0 && p.alpha <= 100)) problems.error({}, fmt::format("alpha {} is not within (0, 100]", p.alpha));
  if (p.tail_from <= p.min || p.tail_from >= p.max) {
    problems.error({}, fmt::format("tail_from {} is not between min {} and max {}", p.tail_from, p.min, p.max));
  } else if (problems.empty() &&
             LognormalRange(p.mu, p.sigma, static_cast<double>(p.min) - 0.5, static_cast<double>(p.tail_from)).mass() <
                 least_mass) {
    problems.error({}, fmt::format("the lognormal has nothing below tail_from {}", p.tail_from));
  }
  if (p.tail_share && !(*p.tail_share > 0 && *p.tail_share < 1)) {
    problems.error({}, fmt::format("tail_share {} is not between 0 and 1", *p.tail_share));
  }
  problems.throw_if_any();
  return std::make_shared<LognormalParetoLengths>(p);
}

}  // namespace hdpsim
