#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/profile/profile_fits.h"

namespace hdpsim::calib {

using Indices = std::vector<std::size_t>;

/// A candidate for explaining samples: fitted to the `known` ones, it predicts the `asked` ones, in seconds.
struct CandidateFit {
  std::string form;
  std::function<std::vector<double>(const Indices& known, const Indices& asked)> predict;
};

/// A candidate's predictions of every sample, in seconds.
struct Predictions {
  std::vector<double> in_sample;
  /// Predicted by a fit to the samples of all folds except the sample's own: ten folds, or one per sample if there are
  /// at most twenty. Samples are dealt to folds in a seeded random order.
  std::vector<double> held_out;
};

/// `held` are the samples that are dealt to folds; all others are always known, and their held_out is meaningless.
[[nodiscard]] Predictions predictions_of(const CandidateFit& candidate, std::size_t samples, const Indices& held,
                                         std::uint64_t seed);

/// The candidate that predicts the held-out samples `of` best: with the least root mean square of relative errors,
/// which fits minimise. Candidates are sorted from the simplest to the richest: a richer one must be better by a
/// twentieth.
[[nodiscard]] std::size_t best_of(const std::vector<Predictions>& candidates, const std::vector<double>& seconds,
                                  const Indices& of);

/// The best candidate for the samples that are held out, with its predictions.
struct Choice {
  std::size_t candidate = 0;
  Predictions predictions;
};
[[nodiscard]] Choice choose(const std::vector<CandidateFit>& candidates, const std::vector<double>& seconds,
                            const Indices& held, std::uint64_t seed);

/// Errors of predictions of the samples `of`.
[[nodiscard]] FitQuality quality(const Predictions& predictions, const std::vector<double>& seconds, const Indices& of);

/// The indices 0, 1, ..., count - 1.
[[nodiscard]] Indices all_indices(std::size_t count);

/// The indices between the first and the last of `count` sizes in ascending order: a fit of transfers is valid between
/// the ends, so that leaving one out would ask it for more than it claims. All indices if there are fewer than four.
[[nodiscard]] Indices inner_indices(std::size_t count);

template <class T>
[[nodiscard]] std::vector<T> selected(const std::vector<T>& items, const Indices& indices) {
  std::vector<T> chosen;
  chosen.reserve(indices.size());
  for (const std::size_t index : indices) chosen.push_back(items[index]);
  return chosen;
}

}  // namespace hdpsim::calib
