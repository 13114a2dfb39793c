#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "calib/fit/impl/cross_validation.h"
#include "calib/fit/impl/families.h"
#include "calib/fit/impl/linear_fits.h"
#include "sim/cost/fitted_attention.h"

namespace hdpsim::calib {
namespace {

/// A term of AttentionFit other than its pairs.
struct AttentionTerm {
  std::string_view name;
  double AttentionFit::*coefficient;
};
constexpr AttentionTerm launch_term = {"launch", &AttentionFit::launch_s};
constexpr AttentionTerm row_term = {"rows", &AttentionFit::row_s};
constexpr AttentionTerm tile_row_term = {"rows of tiles", &AttentionFit::tile_row_s};
constexpr AttentionTerm document_term = {"documents", &AttentionFit::document_s};
constexpr AttentionTerm wave_term = {"waves", &AttentionFit::wave_s};

/// The terms of a form. Knots: octaves between the lengths at which a pair has a cost of its own; 0: one cost for all
/// lengths.
struct AttentionForm {
  std::vector<AttentionTerm> terms;
  int octaves_between_knots = 0;

  [[nodiscard]] std::string text() const {
    std::string text;
    for (const AttentionTerm& term : terms) text += std::string(term.name) + " + ";
    return text + (octaves_between_knots == 0 ? "pairs" : "pairs by length");
  }
};

/// All samples of one kernel; fits forms to parts of them.
class Kernel {
 public:
  Kernel(const std::vector<AttentionTiming>& samples, const Circumstances& device)
      : samples_(samples), multiprocessors_(device.multiprocessors) {
    const Attention& first = samples.front().op;
    empty_.causal = first.blocks.front().mask == Mask::causal;
    empty_.backward = first.direction == Direction::backward;
    empty_.head_dim = first.head_dim;
    empty_.tile_queries = device.attention_tile_queries;
    empty_.tile_keys = device.attention_tile_keys;
    if (empty_.backward) {
      empty_.gradient_tile_queries = device.attention_gradient_tile_queries;
      empty_.gradient_tile_keys = device.attention_gradient_tile_keys;
    }
    empty_.shortest = first.blocks.front().queries;
    for (const AttentionTiming& sample : samples) {
      for (const AttentionBlock& block : sample.op.blocks) {
        empty_.shortest = std::min({empty_.shortest, block.queries, block.keys});
        empty_.longest = std::max({empty_.longest, block.queries, block.keys});
      }
    }
  }

  [[nodiscard]] CandidateFit candidate(const AttentionForm& form) const {
    const Equations all = equations(form);
    const auto predict = [all](const Indices& known, const Indices& asked) {
      const std::vector<double> coefficients =
          relative_least_squares({selected(all.features, known), selected(all.seconds, known)});
      std::vector<double> predictions;
      predictions.reserve(asked.size());
      for (const std::size_t i : asked) predictions.push_back(evaluate(coefficients, all.features[i]));
      return predictions;
    };
    return {form.text(), predict};
  }

  [[nodiscard]] AttentionFit fitted(const AttentionForm& form) const {
    const std::vector<double> coefficients = relative_least_squares(equations(form));
    AttentionFit fit = empty_;
    fit.form = form.text();
    fit.pairs = knots(form);
    std::size_t next = 0;
    for (const AttentionTerm& term : form.terms) fit.*term.coefficient = coefficients[next++];
    for (PairCost& pair : fit.pairs) pair.seconds = coefficients[next++];
    return fit;
  }

 private:
  // The law is linear: the feature of a term is the time of a fit whose coefficients are all zero but that term's one.
  [[nodiscard]] Equations equations(const AttentionForm& form) const {
    std::vector<FittedAttention> units;
    for (const AttentionTerm& term : form.terms) {
      AttentionFit unit = empty_;
      unit.pairs = {{1, 0}};
      unit.*term.coefficient = 1;
      units.emplace_back(unit, multiprocessors_);
    }
    const std::vector<PairCost> lengths = knots(form);
    for (std::size_t knot = 0; knot < lengths.size(); ++knot) {
      AttentionFit unit = empty_;
      unit.pairs = lengths;
      unit.pairs[knot].seconds = 1;
      units.emplace_back(unit, multiprocessors_);
    }
    Equations equations;
    for (const AttentionTiming& sample : samples_) {
      std::vector<double>& features = equations.features.emplace_back();
      for (const FittedAttention& unit : units) {
        features.push_back(fitted_launch({&unit, &unit}, sample.op).seconds);
      }
      equations.seconds.push_back(sample.timing.median_s);
    }
    return equations;
  }

  // Knots from the tile's side on; the last one is at the longest block, or close before it.
  [[nodiscard]] std::vector<PairCost> knots(const AttentionForm& form) const {
    const std::int64_t tile = std::max(empty_.tile_queries, empty_.tile_keys);
    std::vector<PairCost> lengths = {{tile, 0}};
    if (form.octaves_between_knots == 0) return lengths;
    const std::int64_t factor = std::int64_t{1} << form.octaves_between_knots;
    while (lengths.back().length * factor <= empty_.longest) lengths.push_back({lengths.back().length * factor, 0});
    return lengths;
  }

  const std::vector<AttentionTiming>& samples_;
  std::int64_t multiprocessors_;
  AttentionFit empty_;  // without coefficients
};

std::vector<AttentionForm> forms(const Circumstances& device, std::size_t samples) {
  // On one multiprocessor a row of tiles is a wave. Forms with knots need samples to hold them.
  constexpr std::size_t enough_for_knots = 16;
  std::vector<std::vector<AttentionTerm>> sums = {{},
                                                  {launch_term},
                                                  {row_term},
                                                  {launch_term, row_term},
                                                  {launch_term, tile_row_term},
                                                  {launch_term, row_term, document_term},
                                                  {launch_term, row_term, tile_row_term}};
  if (device.multiprocessors > 1) sums.push_back({launch_term, row_term, wave_term});
  std::vector<AttentionForm> forms;
  forms.reserve(3 * sums.size());
  for (const auto& terms : sums) forms.push_back({terms, 0});
  if (samples < enough_for_knots) return forms;
  for (const int octaves : {2, 1}) {
    for (const auto& terms : sums) forms.push_back({terms, octaves});
  }
  return forms;
}

bool is_packed(const Attention& op) {
  return op.blocks.size() > 1;
}

}  // namespace

AttentionFit fit_attention(const std::vector<AttentionTiming>& samples, const Circumstances& device,
                           std::uint64_t seed) {
  const Kernel kernel(samples, device);
  const std::vector<AttentionForm> all = forms(device, samples.size());
  std::vector<CandidateFit> candidates;
  candidates.reserve(all.size());
  for (const AttentionForm& form : all) candidates.push_back(kernel.candidate(form));
  std::vector<double> seconds;
  Indices equal;
  Indices packed;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    seconds.push_back(samples[i].timing.median_s);
    (is_packed(samples[i].op) ? packed : equal).push_back(i);
  }
  const Choice choice = choose(candidates, seconds, all_indices(seconds.size()), seed);
  AttentionFit fit = kernel.fitted(all[choice.candidate]);
  fit.quality = quality(choice.predictions, seconds, equal.empty() ? packed : equal);
  if (!equal.empty() && !packed.empty()) fit.packed = quality(choice.predictions, seconds, packed);
  return fit;
}

}  // namespace hdpsim::calib
