#include "calib/fit/impl/cross_validation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include "sim/base/random.h"

namespace hdpsim::calib {
namespace {

constexpr std::size_t leave_one_out_up_to = 20;
constexpr std::size_t usual_folds = 10;
constexpr double clearly_better = 0.95;

Indices shuffled(Indices order, std::uint64_t seed) {
  RandomStream random(seed, "folds");
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

/// Rounds to a thousandth of a percent, as a profile states errors: more than any is known to.
double stated(double error) {
  constexpr double steps = 1e5;
  return std::round(error * steps) / steps;
}

FitError stated(const FitError& error) {
  return {stated(error.mean), stated(error.p95), stated(error.max)};
}

FitError error_of(std::vector<double> residuals) {
  if (residuals.empty()) return {};
  for (double& residual : residuals) residual = std::abs(residual);
  std::sort(residuals.begin(), residuals.end());
  const double mean = std::accumulate(residuals.begin(), residuals.end(), 0.0) / static_cast<double>(residuals.size());
  const auto p95 = static_cast<std::size_t>(std::ceil(0.95 * static_cast<double>(residuals.size()))) - 1;
  return {mean, residuals[p95], residuals.back()};
}

std::vector<double> residuals_of(const std::vector<double>& predicted, const std::vector<double>& seconds,
                                 const Indices& of) {
  std::vector<double> residuals;
  residuals.reserve(of.size());
  for (const std::size_t i : of) residuals.push_back(predicted[i] / seconds[i] - 1);
  return residuals;
}

double root_mean_square(const std::vector<double>& residuals) {
  const double squares = std::inner_product(residuals.begin(), residuals.end(), residuals.begin(), 0.0);
  return residuals.empty() ? 0 : std::sqrt(squares / static_cast<double>(residuals.size()));
}

std::vector<double> deciles(std::vector<double> residuals) {
  constexpr int parts = 10;
  std::sort(residuals.begin(), residuals.end());
  std::vector<double> found;
  for (int part = 0; part <= parts; ++part) {
    const double place = static_cast<double>(residuals.size() - 1) * part / parts;
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, residuals.size() - 1);
    found.push_back(stated(std::lerp(residuals[below], residuals[above], place - static_cast<double>(below))));
  }
  return found;
}

}  // namespace

Indices all_indices(std::size_t count) {
  Indices indices(count);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  return indices;
}

Indices inner_indices(std::size_t count) {
  constexpr std::size_t fewest = 4;
  Indices indices = all_indices(count);
  if (count < fewest) return indices;
  return {indices.begin() + 1, indices.end() - 1};
}

Predictions predictions_of(const CandidateFit& candidate, std::size_t samples, const Indices& held,
                           std::uint64_t seed) {
  const std::size_t folds = held.size() <= leave_one_out_up_to ? held.size() : usual_folds;
  const Indices order = shuffled(held, seed);
  const Indices all = all_indices(samples);
  Predictions predictions{candidate.predict(all, all), std::vector<double>(samples)};
  for (std::size_t fold = 0; fold < folds; ++fold) {
    Indices asked;
    for (std::size_t i = fold; i < order.size(); i += folds) asked.push_back(order[i]);
    std::sort(asked.begin(), asked.end());
    Indices known;
    std::set_difference(all.begin(), all.end(), asked.begin(), asked.end(), std::back_inserter(known));
    const std::vector<double> predicted = candidate.predict(known, asked);
    for (std::size_t i = 0; i < asked.size(); ++i) predictions.held_out[asked[i]] = predicted[i];
  }
  return predictions;
}

std::size_t best_of(const std::vector<Predictions>& candidates, const std::vector<double>& seconds, const Indices& of) {
  std::size_t best = 0;
  double best_error = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double error = root_mean_square(residuals_of(candidates[i].held_out, seconds, of));
    if (i > 0 && !(error < clearly_better * best_error)) continue;
    best = i;
    best_error = error;
  }
  return best;
}

Choice choose(const std::vector<CandidateFit>& candidates, const std::vector<double>& seconds, const Indices& held,
              std::uint64_t seed) {
  std::vector<Predictions> predictions;
  predictions.reserve(candidates.size());
  for (const CandidateFit& candidate : candidates) {
    predictions.push_back(predictions_of(candidate, seconds.size(), held, seed));
  }
  const std::size_t best = best_of(predictions, seconds, held);
  return {best, std::move(predictions[best])};
}

FitQuality quality(const Predictions& predictions, const std::vector<double>& seconds, const Indices& of) {
  FitQuality quality;
  quality.samples = std::ssize(of);
  if (of.empty()) return quality;
  const std::vector<double> held_out = residuals_of(predictions.held_out, seconds, of);
  quality.in_sample = stated(error_of(residuals_of(predictions.in_sample, seconds, of)));
  quality.held_out = stated(error_of(held_out));
  quality.residual_deciles = deciles(held_out);
  return quality;
}

}  // namespace hdpsim::calib
