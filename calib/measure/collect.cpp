#include "calib/measure/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "calib/measure/summary.h"

namespace hdpsim::calib {
namespace {

/// All rounds of one subject.
struct Rounds {
  const Subject* subject;
  std::vector<Timing> timings;
};

std::vector<Rounds> grouped(const std::vector<Measurement>& measurements) {
  std::vector<Rounds> groups;
  std::map<std::string, std::size_t> index_of;
  for (const Measurement& measurement : measurements) {
    const auto [found, added] = index_of.emplace(subject_text(measurement.subject), groups.size());
    if (added) groups.push_back({&measurement.subject, {}});
    groups[found->second].timings.push_back(measurement.timing);
  }
  return groups;
}

struct Add {
  Samples& samples;
  const Timing& timing;
  void operator()(const Attention& op) const { samples.attention.push_back({op, timing}); }
  void operator()(const Gemm& op) const { samples.gemm.push_back({op, timing}); }
  void operator()(const MemoryBoundSubject& op) const { samples.memory_bound.push_back({op.kernel, op.bytes, timing}); }
  void operator()(const CopySubject& op) const { samples.copies.push_back({op.kind, op.bytes, timing}); }
  void operator()(const MessageSubject& op) const {
    samples.messages.push_back({op.kind, op.link, op.ranks, op.bytes, timing});
  }
  void operator()(const InterferenceSubject& op) const {
    samples.interference.push_back({op.compute, op.traffic, op.ctas, timing.median_s, timing.p10_s, timing.p90_s});
  }
};

NoiseFloor noise_floor(const std::string& family, std::vector<double> gaps) {
  std::sort(gaps.begin(), gaps.end());
  const double mean = std::accumulate(gaps.begin(), gaps.end(), 0.0) / static_cast<double>(gaps.size());
  return {.family = family,
          .mean = mean,
          .p90 = percentile(gaps, 0.9),
          .max = gaps.back(),
          .pairs = static_cast<std::int64_t>(gaps.size())};
}

/// Removes the samples of every curve, named by `curve_of`, that has too few.
template <class Sample, class CurveOf>
void leave_out(std::vector<Sample>& samples, const CurveOf& curve_of, std::vector<std::string>& left_out) {
  std::map<std::string, std::size_t> counts;
  for (const Sample& sample : samples) ++counts[curve_of(sample)];
  std::erase_if(samples, [&](const Sample& sample) { return counts.at(curve_of(sample)) < least_samples; });
  for (const auto& [curve, count] : counts) {
    if (count < least_samples) left_out.push_back(fmt::format("{} ({})", curve, count));
  }
}

struct CurveOf {
  std::string operator()(const Attention& op) const {
    return fmt::format("attention {} {} d{}", op.direction == Direction::forward ? "forward" : "backward",
                       op.blocks.front().mask == Mask::causal ? "causal" : "full", op.head_dim);
  }
  std::string operator()(const Gemm& /*op*/) const { return "matrix products"; }
  // Memory-bound kernels share one shape.
  std::string operator()(const MemoryBoundSubject& /*op*/) const { return "memory-bound kernels"; }
  std::string operator()(const CopySubject& op) const { return fmt::format("copies {}", copy_kind_name(op.kind)); }
  std::string operator()(const MessageSubject& op) const {
    return fmt::format("{} of {} ranks", message_kind_name(op.kind), op.ranks);
  }
  std::string operator()(const InterferenceSubject& /*op*/) const { return "interference"; }
};

constexpr std::size_t least_rounds = 8;
constexpr double least_difference = 0.02;  // between two emptying times: closer ones do not determine a slope
constexpr double usual_emptying = 0.25;    // quantile: kernels also take the lower quartile of their rounds

double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return percentile(values, at);
}

/// By how many percent the time of a subject rises when emptying takes one percent longer.
double slope(const std::vector<const Measurement*>& rounds) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double emptying = std::log(*rounds[i]->emptying_s / *rounds[j]->emptying_s);
      if (std::abs(emptying) < least_difference) continue;
      slopes.push_back(std::log(rounds[i]->timing.median_s / rounds[j]->timing.median_s) / emptying);
    }
  }
  if (slopes.size() < least_rounds) return 0;
  return std::clamp(quantile(std::move(slopes), 0.5), 0.0, 1.0);
}

/// The median times of all rounds, each multiplied by its factor.
std::vector<double> medians(const std::vector<const Measurement*>& rounds, const std::vector<double>& factors) {
  std::vector<double> found;
  for (std::size_t i = 0; i < rounds.size(); ++i) found.push_back(rounds[i]->timing.median_s * factors[i]);
  return found;
}

/// The factors that correct every round to the usual emptying time; 1 if that does not make the rounds more alike.
std::vector<double> factors_to(double usual, const std::vector<const Measurement*>& rounds) {
  const std::vector<double> ones(rounds.size(), 1);
  const double s = slope(rounds);
  std::vector<double> factors;
  factors.reserve(rounds.size());
  for (const Measurement* round : rounds) factors.push_back(std::pow(usual / *round->emptying_s, s));
  const double at = quantile_of_rounds(rounds.front()->subject);
  const double before = uncertainty_of_quantile(medians(rounds, ones), at);
  return uncertainty_of_quantile(medians(rounds, factors), at) < before ? factors : ones;
}

void scale(Timing& timing, double factor) {
  timing.median_s *= factor;
  timing.p10_s *= factor;
  timing.p90_s *= factor;
}

}  // namespace

std::string curve_of(const Subject& subject) {
  return std::visit(CurveOf{}, subject);
}

double quantile_of_rounds(const Subject& subject) {
  return std::holds_alternative<MessageSubject>(subject) ? 0.5 : 0.25;
}

Samples collect(const Circumstances& circumstances, const std::vector<Measurement>& measurements) {
  Samples samples;
  samples.circumstances = circumstances;
  std::map<std::string, std::vector<double>> gaps;
  const std::vector<Measurement> comparable = at_one_speed_of_memory(measurements);
  for (const Rounds& rounds : grouped(comparable)) {
    const double at = quantile_of_rounds(*rounds.subject);
    std::visit(Add{samples, pooled(rounds.timings, at)}, *rounds.subject);
    if (rounds.timings.size() < 2) continue;
    std::vector<double> medians;
    for (const Timing& timing : rounds.timings) medians.push_back(timing.median_s);
    gaps[std::string(family_of(*rounds.subject))].push_back(gap_of_halves(medians, at));
  }
  for (auto& [family, values] : gaps) samples.noise.push_back(noise_floor(family, std::move(values)));
  return samples;
}

std::vector<Subject> subjects_of(const Samples& samples) {
  std::vector<Subject> subjects;
  for (const AttentionTiming& sample : samples.attention) subjects.emplace_back(sample.op);
  for (const GemmTiming& sample : samples.gemm) subjects.emplace_back(sample.op);
  for (const MemoryBoundTiming& sample : samples.memory_bound) {
    subjects.emplace_back(MemoryBoundSubject{sample.kernel, sample.bytes});
  }
  for (const CopyTiming& sample : samples.copies) subjects.emplace_back(CopySubject{sample.kind, sample.bytes});
  for (const MessageTiming& sample : samples.messages) {
    subjects.emplace_back(MessageSubject{sample.kind, sample.ranks, sample.bytes, sample.link});
  }
  return subjects;
}

std::vector<std::string> leave_out_thin_curves(Samples& samples) {
  std::vector<std::string> left_out;
  constexpr CurveOf curve{};
  leave_out(
      samples.attention, [&](const AttentionTiming& sample) { return curve(sample.op); }, left_out);
  leave_out(
      samples.gemm, [&](const GemmTiming& sample) { return curve(sample.op); }, left_out);
  leave_out(
      samples.memory_bound,
      [&](const MemoryBoundTiming& sample) {
        return curve(MemoryBoundSubject{sample.kernel, sample.bytes});
      },
      left_out);
  leave_out(
      samples.copies,
      [&](const CopyTiming& sample) {
        return curve(CopySubject{sample.kind, sample.bytes});
      },
      left_out);
  const auto message_curve = [&](const MessageTiming& sample) {
    return fmt::format("{} over {}", curve(MessageSubject{sample.kind, sample.ranks, sample.bytes}),
                       link_kind_name(sample.link));
  };
  leave_out(samples.messages, message_curve, left_out);
  return left_out;
}

std::vector<Measurement> at_one_speed_of_memory(std::vector<Measurement> measurements) {
  std::map<std::string, std::vector<Measurement*>> subjects;
  std::vector<double> emptyings;
  for (Measurement& measurement : measurements) {
    if (!measurement.emptying_s) continue;
    subjects[subject_text(measurement.subject)].push_back(&measurement);
    emptyings.push_back(*measurement.emptying_s);
  }
  if (emptyings.empty()) return measurements;
  const double usual = quantile(std::move(emptyings), usual_emptying);
  for (auto& [text, rounds] : subjects) {
    if (rounds.size() < least_rounds) continue;
    const std::vector<double> factors = factors_to(usual, {rounds.begin(), rounds.end()});
    for (std::size_t i = 0; i < rounds.size(); ++i) scale(rounds[i]->timing, factors[i]);
  }
  return measurements;
}

}  // namespace hdpsim::calib
