#include <algorithm>
#include <cmath>
#include <map>

#include "calib/fit/impl/cross_validation.h"
#include "calib/fit/impl/families.h"
#include "calib/fit/impl/linear_fits.h"
#include "sim/cost/fitted_transfer.h"

namespace hdpsim::calib {
namespace {

using Samples = std::vector<MemoryBoundSample>;

constexpr std::array<int, 4> knot_distances = {0, 3, 2, 1};  // octaves; 0: no knots

struct Range {
  double least;
  double most;
};

Range range_of(const Samples& samples) {
  const auto [least, most] =
      std::minmax_element(samples.begin(), samples.end(),
                          [](const MemoryBoundSample& a, const MemoryBoundSample& b) { return a.bytes < b.bytes; });
  return {static_cast<double>(least->bytes.count()), static_cast<double>(most->bytes.count())};
}

TransferCurve scaled(const TransferCurve& curve, double factor) {
  TransferCurve result = curve;
  result.latency = curve.latency.scaled(factor);
  for (ByteCost& cost : result.costs) {
    if (cost.bandwidth) cost.bandwidth = bandwidth_of(factor / static_cast<double>(cost.bandwidth->bytes_per_second()));
  }
  return result;
}

/// The way in which a family of kernels is explained.
struct MemoryForm {
  enum class Kernels {
    mean,   ///< The curve of a mean kernel for all.
    alike,  ///< The curve of a mean kernel times a factor per kernel.
    apart,  ///< A curve for each kernel.
  };
  Kernels kernels = Kernels::mean;
  int octaves_between_knots = 0;

  [[nodiscard]] std::string text() const {
    return curve_form(octaves_between_knots) + (kernels == Kernels::alike ? ", one shape for all kernels" : "");
  }
};

/// One curve for all kernels and a factor for each.
struct Shape {
  TransferCurve curve;
  std::map<std::string, double> factors;  ///< Their geometric mean is 1.
};

void set_factors(Shape& shape, const Samples& samples) {
  std::map<std::string, std::vector<double>> ratios;
  for (const MemoryBoundSample& sample : samples) {
    const double predicted = fitted_seconds(shape.curve, static_cast<double>(sample.bytes.count()));
    if (!(predicted > 0)) continue;  // a curve of a few disturbed samples may cost nothing where it has none
    ratios[sample.kernel].push_back(std::log(sample.time.seconds() / predicted));
  }
  double sum = 0;
  for (auto& [kernel, logs] : ratios) {
    const auto middle = logs.begin() + std::ssize(logs) / 2;
    std::nth_element(logs.begin(), middle, logs.end());
    shape.factors[kernel] = *middle;
    sum += *middle;
  }
  for (const auto& [kernel, logs] : ratios) {
    double& factor = shape.factors[kernel];
    factor = std::exp(factor - sum / static_cast<double>(ratios.size()));
  }
}

/// Fits curve and factors in turn, each given the other.
Shape shape_of(const Samples& samples, Range range, int octaves) {
  constexpr int rounds = 5;
  Shape shape;
  for (const MemoryBoundSample& sample : samples) shape.factors[sample.kernel] = 1;
  for (int round = 0; round < rounds; ++round) {
    Transfers even = transfers_of(samples);
    for (std::size_t i = 0; i < samples.size(); ++i) even.seconds[i] /= shape.factors[samples[i].kernel];
    shape.curve = fit_curve(even, range.least, range.most, octaves);
    set_factors(shape, samples);
  }
  return shape;
}

using Curves = std::map<std::string, TransferCurve>;

Curves curves_of(const Samples& samples, Range range, const MemoryForm& form) {
  Curves curves;
  if (form.kernels == MemoryForm::Kernels::apart) {
    std::map<std::string, Samples> kernels;
    for (const MemoryBoundSample& sample : samples) kernels[sample.kernel].push_back(sample);
    for (const auto& [kernel, own] : kernels) {
      curves[kernel] = fit_curve(transfers_of(own), range.least, range.most, form.octaves_between_knots);
    }
    return curves;
  }
  const Shape shape = shape_of(samples, range, form.octaves_between_knots);
  curves[std::string(every_kernel)] = shape.curve;
  for (const auto& [kernel, factor] : shape.factors) {
    curves[kernel] = form.kernels == MemoryForm::Kernels::mean ? shape.curve : scaled(shape.curve, factor);
  }
  return curves;
}

CandidateFit candidate(const Samples& samples, const MemoryForm& form) {
  const Range range = range_of(samples);
  const auto predict = [&samples, form, range](const Indices& known, const Indices& asked) {
    const Curves curves = curves_of(selected(samples, known), range, form);
    std::vector<double> predictions;
    for (const std::size_t i : asked) {
      // A kernel whose samples are all held out has no curve of its own.
      auto curve = curves.find(samples[i].kernel);
      if (curve == curves.end()) curve = curves.find(std::string(every_kernel));
      const auto bytes = static_cast<double>(samples[i].bytes.count());
      predictions.push_back(curve == curves.end() ? 0 : fitted_seconds(curve->second, bytes));
    }
    return predictions;
  };
  return {form.text(), predict};
}

/// All forms of some kinds, and their predictions.
class MemoryForms {
 public:
  MemoryForms(const Samples& samples, const Indices& held, const std::vector<MemoryForm::Kernels>& kinds,
              std::uint64_t seed)
      : samples_(samples), seconds_(transfers_of(samples).seconds) {
    for (const MemoryForm::Kernels kernels : kinds) {
      for (const int octaves : knot_distances) forms_.push_back({kernels, octaves});
    }
    for (const MemoryForm& form : forms_) {
      predictions_.push_back(predictions_of(candidate(samples, form), samples.size(), held, seed));
    }
  }

  /// The fit of a kernel, or of all, under the form that predicts its held-out samples best.
  [[nodiscard]] MemoryBoundFit best(std::string_view name, const Indices& all, const Indices& held) const {
    const std::size_t best = best_of(predictions_, seconds_, held);
    const Samples own = selected(samples_, all);
    const Range range = range_of(own);
    MemoryBoundFit fit;
    fit.kernel = name;
    fit.form = forms_[best].text();
    fit.curve = curves_of(samples_, range_of(samples_), forms_[best]).at(own.front().kernel);
    fit.least = Bytes(std::llround(range.least));
    fit.most = Bytes(std::llround(range.most));
    fit.quality = quality(predictions_[best], seconds_, held);
    return fit;
  }

 private:
  const Samples& samples_;
  std::vector<double> seconds_;
  std::vector<MemoryForm> forms_;
  std::vector<Predictions> predictions_;  // by form
};

}  // namespace

std::vector<MemoryBoundFit> fit_memory_bound(std::vector<MemoryBoundSample> samples, std::uint64_t seed) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const MemoryBoundSample& a, const MemoryBoundSample& b) { return a.bytes < b.bytes; });
  std::map<std::string, Indices> kernels;
  for (std::size_t i = 0; i < samples.size(); ++i) kernels[samples[i].kernel].push_back(i);
  std::map<std::string, Indices> held_of;
  Indices held;
  for (const auto& [kernel, own] : kernels) {
    held_of[kernel] = selected(own, inner_indices(own.size()));
    held.insert(held.end(), held_of[kernel].begin(), held_of[kernel].end());
  }
  std::vector<MemoryBoundFit> fits;
  const MemoryForms mean(samples, held, {MemoryForm::Kernels::mean}, seed);
  fits.push_back(mean.best(every_kernel, all_indices(samples.size()), held));
  const MemoryForms each(samples, held, {MemoryForm::Kernels::apart, MemoryForm::Kernels::alike}, seed);
  for (const auto& [kernel, own] : kernels) fits.push_back(each.best(kernel, own, held_of[kernel]));
  return fits;
}

CopyFit fit_copies(std::vector<CopySample> samples, std::uint64_t seed) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const CopySample& a, const CopySample& b) { return a.bytes < b.bytes; });
  const Transfers all = transfers_of(samples);
  const auto predict = [&all](const Indices& known, const Indices& asked) {
    const Line line = fit_line(selected(all.bytes, known), selected(all.seconds, known));
    std::vector<double> predictions;
    for (const std::size_t i : asked) predictions.push_back(line.latency_s + line.byte_s * all.bytes[i]);
    return predictions;
  };
  const Indices held = inner_indices(samples.size());
  const Choice choice = choose({{curve_form(0), predict}}, all.seconds, held, seed);
  const Line line = fit_line(all.bytes, all.seconds);
  CopyFit fit;
  fit.kind = samples.front().kind;
  fit.latency = Duration::seconds(line.latency_s);
  fit.bandwidth = bandwidth_of(line.byte_s);
  fit.least = Bytes(std::llround(all.bytes.front()));
  fit.most = Bytes(std::llround(all.bytes.back()));
  fit.quality = quality(choice.predictions, all.seconds, held);
  return fit;
}

}  // namespace hdpsim::calib
