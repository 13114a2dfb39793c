#include "sim/trace/impl/lognormal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/trace/impl/normal.h"

namespace hdpsim {
namespace {

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
