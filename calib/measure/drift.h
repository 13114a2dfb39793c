#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// One sample of a profile, timed again.
struct PaceRatio {
  CostFamily family = CostFamily::gemm;
  std::string what;       ///< The sample for people: "gemm 512x512x512".
  double quantile = 0.5;  ///< Which quantile of its rounds counts: quantile_of_rounds().
  double ratio = 1;       ///< Its time now over its time in the profile.
};

/// The verdict on a family of costs.
enum class Judgement {
  holds,    ///< It takes as long as in the profile, up to what it may differ by.
  slower,   ///< It takes longer than that, by more than its rounds leave uncertain.
  faster,   ///< The same in less time.
  unclear,  ///< Its rounds differ too much to decide.
};
/// "holds", "slower", "faster", "unclear".
[[nodiscard]] std::string_view judgement_name(Judgement judgement);

/// The drift of one family of a profile: its time now against its time in the profile.
struct FamilyDrift {
  CostFamily family = CostFamily::gemm;
  std::int64_t samples = 0;  ///< How many of its samples were timed again.
  std::int64_t rounds = 0;   ///< How often.
  double ratio = 1;  ///< Time now over time in the profile: of the median sample, as a calibration counts rounds.
  double p10 = 1;    ///< Of all samples in all rounds.
  double p90 = 1;
  double uncertainty = 0;  ///< Of the ratio, as a share of it: what the rounds leave open.
  double allowance = 0;    ///< The largest difference of the ratio from 1 with which the profile still holds.
  std::string furthest;    ///< The sample that is furthest from its time in the profile.
  double furthest_ratio = 1;
  Judgement judgement = Judgement::holds;
};

/// By how much a ratio differs from 1 on a machine that has not changed: kernels of less than half a millisecond
/// are 5 % slower or faster for minutes at a time (calib/README.md, "Measured on a CPU").
inline constexpr double usual_variation = 0.05;

/// With fewer rounds, quantiles have no known spread.
inline constexpr std::int64_t least_drift_rounds = 3;

/// Judges every family of which there are ratios, in the order of CostFamily. `rounds` has the ratios of each round;
/// `noise` is the noise floor of the profile. A family may differ by `usual_variation` or by the 90th percentile of its
/// noise floor, whichever is more. It
/// * holds if its ratio is within that and known as well (its uncertainty is no more),
/// * is slower or faster if the ratio is outside of it by more than its uncertainty,
/// * is unclear otherwise, and after fewer than least_drift_rounds.
[[nodiscard]] std::vector<FamilyDrift> drift_of(const std::vector<std::vector<PaceRatio>>& rounds,
                                                const std::vector<NoiseFloor>& noise);

/// The verdict on a profile.
enum class Verdict { holds, drifted, unclear };
/// "holds", "drifted", "unclear".
[[nodiscard]] std::string_view verdict_name(Verdict verdict);
/// Drifted if any family is slower or faster; otherwise unclear if any family is.
[[nodiscard]] Verdict verdict_on(const std::vector<FamilyDrift>& families);

/// "time now over time in the profile: matrix products 1.25, host copies 0.71": the families that are slower or faster.
/// Empty if none is.
[[nodiscard]] std::string drift_words(const std::vector<FamilyDrift>& families);
/// A table of families, for people.
[[nodiscard]] std::string drift_table(const std::vector<FamilyDrift>& families);

}  // namespace hdpsim::calib
