#include "sim/trace/length_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/diagnostic.h"
#include "sim/document/json.h"
#include "sim/trace/description.h"
#include "sim/trace/impl/lognormal.h"

namespace hdpsim {
namespace {

using Bucket = LengthTally::Bucket;
constexpr std::size_t threshold_count = last_threshold_log2 - first_threshold_log2 + 1;
constexpr std::int64_t fewest_lengths = 100;
constexpr std::int64_t fewest_in_tail = 25;
// A tail outside this range is none: the bisection ran into the end of its range.
constexpr double heaviest_alpha = 0.05;
constexpr double lightest_alpha = 20;
constexpr double worthwhile = 0.9;  // relative to the fit without a tail
constexpr double widest = 0.3;      // share of the documents in a tail

/// The mean and the variance of ln(length), over the buckets up to a length.
struct LogMoments {
  double count = 0;
  double mean = 0;
  double variance = 0;
};

struct Empirical {
  std::vector<Bucket> buckets;
  std::int64_t count = 0;
  std::array<double, threshold_count> token_shares{};
  std::int64_t min = 0;
  std::int64_t max = 0;
};

Empirical empirical(const LengthTally& tally) {
  Empirical data{tally.buckets(), tally.total().count, {}, tally.min(), tally.max()};
  for (std::size_t i = 0; i < threshold_count; ++i) {
    const LengthTally::Sums above = tally.above(first_threshold_log2 + static_cast<int>(i));
    data.token_shares[i] = static_cast<double>(above.tokens) / static_cast<double>(tally.total().tokens);
  }
  return data;
}

template <class Value>
double sum_over(const std::vector<Bucket>& buckets, std::int64_t from, std::int64_t to, Value value) {
  double sum = 0;
  for (const Bucket& bucket : buckets) {
    if (bucket.lower >= from && bucket.upper <= to) sum += static_cast<double>(bucket.count) * value(bucket);
  }
  return sum;
}

LogMoments log_moments(const std::vector<Bucket>& buckets, std::int64_t to) {
  LogMoments moments;
  moments.count = sum_over(buckets, 1, to, [](const Bucket&) { return 1.0; });
  moments.mean = sum_over(buckets, 1, to, [](const Bucket& b) { return std::log(b.mean); }) / moments.count;
  const auto square = [&](const Bucket& b) { return std::pow(std::log(b.mean) - moments.mean, 2); };
  moments.variance = sum_over(buckets, 1, to, square) / moments.count;
  return moments;
}

// A length s means the range (s - 1/2, s + 1/2) of the continuous distribution.
template <class Cdf, class MeanAbove>
Goodness goodness(const Empirical& data, Cdf cdf, MeanAbove mean_above) {
  Goodness goodness;
  std::int64_t passed = 0;
  const auto differ = [&](std::int64_t edge) {
    const double share = static_cast<double>(passed) / static_cast<double>(data.count);
    goodness.ks_distance = std::max(goodness.ks_distance, std::abs(cdf(static_cast<double>(edge) + 0.5) - share));
  };
  for (const Bucket& bucket : data.buckets) {
    differ(bucket.lower - 1);
    passed += bucket.count;
    differ(bucket.upper);
  }
  const double mean = mean_above(0.0);
  for (std::size_t i = 0; i < threshold_count; ++i) {
    const double edge = std::exp2(first_threshold_log2 + static_cast<int>(i)) + 0.5;
    const double error = std::abs(mean_above(edge) / mean - data.token_shares[i]);
    goodness.token_share_error = std::max(goodness.token_share_error, error);
  }
  return goodness;
}

double badness(const Goodness& goodness) {
  return goodness.ks_distance + goodness.token_share_error;
}

LengthFit::Body fit_lognormal(const Empirical& data) {
  const LogMoments moments = log_moments(data.buckets, data.max * 2);
  const Lognormal parameters{moments.mean, std::sqrt(moments.variance), data.min, data.max};
  const LognormalRange range = rounding_range(parameters);
  return {parameters, goodness(
                          data, [&](double x) { return range.cdf(x); }, [&](double x) { return range.mean_above(x); })};
}

/// mu and sigma of a normal that was observed only below `cut`, with this mean and variance: the fixed point of the
/// moment equations of the truncated normal, which are its likelihood equations (Cohen, 1950).
std::optional<Lognormal> untruncated(const LogMoments& seen, double cut) {
  double mu = seen.mean;
  double sigma = std::sqrt(seen.variance);
  for (int round = 0; round < 500; ++round) {
    const double z = (cut - mu) / sigma;
    const double hazard = normal_density(z) / normal_cdf(z);
    const double narrowing = 1 - z * hazard - hazard * hazard;
    if (!(narrowing > 0.05)) return std::nullopt;  // too little of the normal was observed to determine it
    const double next_sigma = std::sqrt(seen.variance / narrowing);
    const double next_mu = seen.mean + next_sigma * hazard;
    const bool settled = std::abs(next_mu - mu) + std::abs(next_sigma - sigma) < 1e-10;
    mu = next_mu;
    sigma = next_sigma;
    if (settled) break;
  }
  return Lognormal{.mu = mu, .sigma = sigma};
}

/// Solves 1/alpha + r^alpha ln(r) / (1 - r^alpha) = mean of ln(x / from) for alpha, r = from / to, by bisection: the
/// left side falls as alpha rises.
double tail_index(double mean_log_excess, double from, double to) {
  const double log_ratio = std::log(from / to);
  double low = heaviest_alpha;
  double high = lightest_alpha;
  for (int round = 0; round < 100; ++round) {
    const double alpha = 0.5 * (low + high);
    const double power = std::exp(alpha * log_ratio);
    const double expected = 1 / alpha + power * log_ratio / (1 - power);
    (expected > mean_log_excess ? low : high) = alpha;
  }
  return 0.5 * (low + high);
}

std::optional<LengthFit::Tailed> fit_with_tail_from(const Empirical& data, std::int64_t tail_from) {
  const auto from = static_cast<double>(tail_from) + 0.5;
  const double to = static_cast<double>(data.max) + 0.5;
  const LogMoments below = log_moments(data.buckets, tail_from);
  const double in_tail = static_cast<double>(data.count) - below.count;
  if (!(below.count >= fewest_lengths / 2.0 && in_tail >= fewest_in_tail && below.variance > 0)) return std::nullopt;
  const auto body = untruncated(below, std::log(from));
  if (!body) return std::nullopt;
  const auto log_excess = [&](const Bucket& b) { return std::log(b.mean / from); };
  const double mean_log_excess = sum_over(data.buckets, tail_from + 1, data.max * 2, log_excess) / in_tail;
  const double alpha = tail_index(mean_log_excess, from, to);
  if (!(alpha > 1.01 * heaviest_alpha && alpha < 0.99 * lightest_alpha)) return std::nullopt;
  const LognormalPareto parameters{.mu = body->mu,
                                   .sigma = body->sigma,
                                   .tail_from = tail_from,
                                   .alpha = alpha,
                                   .min = data.min,
                                   .max = data.max,
                                   .tail_share = in_tail / static_cast<double>(data.count)};
  const LognormalRange range(body->mu, body->sigma, static_cast<double>(data.min) - 0.5, from);
  const TruncatedPareto tail(parameters.alpha, from, to);
  const double share = *parameters.tail_share;
  const auto cdf = [&](double x) { return (1 - share) * range.cdf(x) + share * tail.cdf(x); };
  const auto mean_above = [&](double x) { return (1 - share) * range.mean_above(x) + share * tail.mean_above(x); };
  return LengthFit::Tailed{parameters, goodness(data, cdf, mean_above)};
}

/// Tries tails from 30 % of the documents down to 25 documents, four thresholds per factor of ten.
std::optional<LengthFit::Tailed> fit_tailed(const LengthTally& tally, const Empirical& data) {
  std::optional<LengthFit::Tailed> best;
  const auto smallest = static_cast<double>(fewest_in_tail) / static_cast<double>(data.count);
  for (int quarter = 0; quarter <= 4 * std::log10(widest / smallest); ++quarter) {
    const std::int64_t at = tally.quantile(1 - widest * std::pow(10, -0.25 * quarter));
    const auto bucket =
        std::find_if(data.buckets.begin(), data.buckets.end(), [&](const Bucket& b) { return b.upper >= at; });
    if (bucket->upper <= data.min || bucket->upper >= data.max) continue;
    auto candidate = fit_with_tail_from(data, bucket->upper);
    if (candidate && (!best || badness(candidate->goodness) < badness(best->goodness))) best = candidate;
  }
  return best;
}

Json json_of(const Goodness& goodness) {
  return {{"ks_distance", goodness.ks_distance}, {"token_share_error", goodness.token_share_error}};
}

std::string line_of(std::string_view name, const Goodness& goodness, bool best) {
  return fmt::format("{:<20}{:>14.4f}{:>22.4f}{}\n", name, goodness.ks_distance, goodness.token_share_error,
                     best ? "   <- best" : "");
}

}  // namespace

LengthFit fit(const LengthTally& tally) {
  if (tally.total().count < fewest_lengths) {
    throw InputError(fmt::format("{} lengths are too few to fit", tally.total().count),
                     fmt::format("give at least {}", fewest_lengths));
  }
  if (tally.min() == tally.max()) {
    throw InputError(fmt::format("all {} lengths are {}: there is nothing to fit", tally.total().count, tally.min()));
  }
  const Empirical data = empirical(tally);
  LengthFit fit{.lognormal = fit_lognormal(data), .lognormal_pareto = fit_tailed(tally, data), .tail_is_better = false};
  fit.tail_is_better =
      fit.lognormal_pareto && badness(fit.lognormal_pareto->goodness) < worthwhile * badness(fit.lognormal.goodness);
  return fit;
}

LengthFit fit(LengthSource& source) {
  return fit(tally(source));
}

LengthDistributionPtr make_distribution(const LengthFit& fit) {
  return fit.tail_is_better ? make_distribution(fit.lognormal_pareto->parameters)
                            : make_distribution(fit.lognormal.parameters);
}

std::string text_of(const LengthFit& fit) {
  std::string text = fmt::format("{:<20}{:>14}{:>22}\n", "", "KS distance", "token share error");
  text += line_of("lognormal", fit.lognormal.goodness, !fit.tail_is_better);
  if (fit.lognormal_pareto) text += line_of("lognormal_pareto", fit.lognormal_pareto->goodness, fit.tail_is_better);
  const Lognormal& l = fit.lognormal.parameters;
  text += fmt::format("\nlognormal: {{mu: {:.5g}, sigma: {:.5g}, min: {}, max: {}}}\n", l.mu, l.sigma, l.min, l.max);
  if (!fit.lognormal_pareto) return text;
  const LognormalPareto& p = fit.lognormal_pareto->parameters;
  return text + fmt::format(
                    "lognormal_pareto: {{mu: {:.5g}, sigma: {:.5g}, tail_from: {}, alpha: {:.5g}, "
                    "tail_share: {:.5g}, min: {}, max: {}}}\n",
                    p.mu, p.sigma, p.tail_from, p.alpha, p.tail_share.value_or(0), p.min, p.max);
}

std::string csv_of(const LengthFit& fit) {
  std::string text = "family,mu,sigma,tail_from,alpha,tail_share,min,max,ks_distance,token_share_error,best\n";
  const Lognormal& l = fit.lognormal.parameters;
  text +=
      fmt::format("lognormal,{},{},,,,{},{},{},{},{}\n", l.mu, l.sigma, l.min, l.max,
                  fit.lognormal.goodness.ks_distance, fit.lognormal.goodness.token_share_error, !fit.tail_is_better);
  if (!fit.lognormal_pareto) return text;
  const auto& [p, good] = *fit.lognormal_pareto;
  return text + fmt::format("lognormal_pareto,{},{},{},{},{},{},{},{},{},{}\n", p.mu, p.sigma, p.tail_from, p.alpha,
                            p.tail_share.value_or(0), p.min, p.max, good.ks_distance, good.token_share_error,
                            fit.tail_is_better);
}

Json json_of(const LengthFit& fit) {
  const Lognormal& l = fit.lognormal.parameters;
  Json json{{"schema", "hdpsim.length-fit/1"}, {"best", fit.tail_is_better ? "lognormal_pareto" : "lognormal"}};
  json["lognormal"] = {
      {"mu", l.mu}, {"sigma", l.sigma}, {"min", l.min}, {"max", l.max}, {"goodness", json_of(fit.lognormal.goodness)}};
  if (!fit.lognormal_pareto) return json;
  const auto& [p, good] = *fit.lognormal_pareto;
  json["lognormal_pareto"] = {{"mu", p.mu},
                              {"sigma", p.sigma},
                              {"tail_from", p.tail_from},
                              {"alpha", p.alpha},
                              {"tail_share", p.tail_share.value_or(0)},
                              {"min", p.min},
                              {"max", p.max},
                              {"goodness", json_of(good)}};
  return json;
}

}  // namespace hdpsim
