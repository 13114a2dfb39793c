#include "calib/measure/drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "calib/measure/summary.h"

namespace hdpsim::calib {
namespace {

double quantile_of(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return percentile(values, at);
}

// The family of a profile's noise floor.
std::string_view noise_family(CostFamily family) {
  switch (family) {
    case CostFamily::attention_forward:
    case CostFamily::attention_backward:
      return "attention";
    case CostFamily::gemm:
      return "gemm";
    case CostFamily::memory_bound:
      return "memory_bound";
    case CostFamily::messages:
    case CostFamily::collectives:
      return "messages";
    case CostFamily::host_copies:
      return "copies";
  }
  return {};
}

double allowance_of(CostFamily family, const std::vector<NoiseFloor>& noise) {
  const auto found = std::find_if(noise.begin(), noise.end(),
                                  [&](const NoiseFloor& one) { return one.family == noise_family(family); });
  return found == noise.end() ? usual_variation : std::max(usual_variation, found->p90);
}

Judgement judged(const FamilyDrift& drift) {
  if (drift.rounds < least_drift_rounds) return Judgement::unclear;
  const double allowed = std::log1p(drift.allowance);
  const double off = std::abs(std::log(drift.ratio));
  const double open = std::log1p(drift.uncertainty);
  if (off <= allowed && open <= allowed) return Judgement::holds;
  if (off - open > allowed) return drift.ratio > 1 ? Judgement::slower : Judgement::faster;
  return Judgement::unclear;
}

/// The ratios of one family.
struct Ratios {
  std::map<std::string, std::vector<double>> by_sample;  ///< One a round.
  std::vector<double> all;
  std::vector<double> medians;  ///< Of the samples, one a round.
  double quantile = 0.5;
};

Ratios ratios_of(CostFamily family, const std::vector<std::vector<PaceRatio>>& rounds) {
  Ratios ratios;
  for (const std::vector<PaceRatio>& round : rounds) {
    std::vector<double> of_round;
    for (const PaceRatio& one : round) {
      if (one.family != family) continue;
      of_round.push_back(one.ratio);
      ratios.by_sample[one.what].push_back(one.ratio);
      ratios.quantile = one.quantile;
    }
    if (of_round.empty()) continue;
    ratios.all.insert(ratios.all.end(), of_round.begin(), of_round.end());
    ratios.medians.push_back(quantile_of(std::move(of_round), 0.5));
  }
  return ratios;
}

FamilyDrift drift_of(CostFamily family, const Ratios& ratios, const std::vector<NoiseFloor>& noise) {
  FamilyDrift drift{.family = family,
                    .samples = static_cast<std::int64_t>(ratios.by_sample.size()),
                    .rounds = static_cast<std::int64_t>(ratios.medians.size()),
                    .ratio = quantile_of(ratios.medians, ratios.quantile),
                    .p10 = quantile_of(ratios.all, 0.1),
                    .p90 = quantile_of(ratios.all, 0.9),
                    .uncertainty = uncertainty_of_quantile(ratios.medians, ratios.quantile),
                    .allowance = allowance_of(family, noise),
                    .furthest = {}};
  for (const auto& [what, of_sample] : ratios.by_sample) {
    const double ratio = quantile_of(of_sample, ratios.quantile);
    if (!drift.furthest.empty() && std::abs(std::log(ratio)) <= std::abs(std::log(drift.furthest_ratio))) continue;
    drift.furthest = what;
    drift.furthest_ratio = ratio;
  }
  drift.judgement = judged(drift);
  return drift;
}

std::string_view in_words(CostFamily family) {
  constexpr std::array<std::string_view, cost_families> names = {
      "attention forward", "attention backward", "matrix products", "memory-bound kernels",
      "messages",          "collectives",        "host copies"};
  return names.at(static_cast<std::size_t>(family));
}

}  // namespace

std::string_view judgement_name(Judgement judgement) {
  constexpr std::array<std::string_view, 4> names = {"holds", "slower", "faster", "unclear"};
  return names.at(static_cast<std::size_t>(judgement));
}

std::string_view verdict_name(Verdict verdict) {
  constexpr std::array<std::string_view, 3> names = {"holds", "drifted", "unclear"};
  return names.at(static_cast<std::size_t>(verdict));
}

std::vector<FamilyDrift> drift_of(const std::vector<std::vector<PaceRatio>>& rounds,
                                  const std::vector<NoiseFloor>& noise) {
  std::vector<FamilyDrift> families;
  for (std::size_t i = 0; i < cost_families; ++i) {
    const auto family = static_cast<CostFamily>(i);
    const Ratios ratios = ratios_of(family, rounds);
    if (!ratios.all.empty()) families.push_back(drift_of(family, ratios, noise));
  }
  return families;
}

Verdict verdict_on(const std::vector<FamilyDrift>& families) {
  const auto any = [&](auto... judgements) {
    return std::any_of(families.begin(), families.end(),
                       [&](const FamilyDrift& family) { return ((family.judgement == judgements) || ...); });
  };
  if (any(Judgement::slower, Judgement::faster)) return Verdict::drifted;
  return any(Judgement::unclear) ? Verdict::unclear : Verdict::holds;
}

std::string drift_words(const std::vector<FamilyDrift>& families) {
  std::string words;
  for (const FamilyDrift& family : families) {
    if (family.judgement != Judgement::slower && family.judgement != Judgement::faster) continue;
    words += fmt::format("{}{} {:.2f}", words.empty() ? "time now over time in the profile: " : ", ",
                         in_words(family.family), family.ratio);
  }
  return words;
}

std::string drift_table(const std::vector<FamilyDrift>& families) {
  constexpr double percent = 100;
  std::string text = fmt::format("  {:<20}  {:>7}  {:>6}  {:>13}  {:>14}  {:>9}  {}\n", "family", "samples", "rounds",
                                 "now / profile", "p10 to p90", "may be", "judgement");
  for (const FamilyDrift& family : families) {
    text += fmt::format(
        "  {:<20}  {:>7}  {:>6}  {:>13}  {:>14}  {:>9}  {}; furthest {} {:.2f}\n", in_words(family.family),
        family.samples, family.rounds, fmt::format("{:.3f} +-{:.3f}", family.ratio, family.ratio * family.uncertainty),
        fmt::format("{:.2f} to {:.2f}", family.p10, family.p90), fmt::format("+-{:.1f} %", percent * family.allowance),
        judgement_name(family.judgement), family.furthest, family.furthest_ratio);
  }
  return text;
}

}  // namespace hdpsim::calib
