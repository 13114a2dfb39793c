#include "sim/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/duration_sum.h"

namespace hdpsim {
namespace {

void add_share(Pair& sum, const Pair& pair, double share) {
  sum.predicted += pair.predicted * share;
  sum.measured += pair.measured * share;
}

void add_ranks(std::vector<RankComparison>& sums, const std::vector<RankComparison>& ranks, double share) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    add_share(sums[i].busy_s, ranks[i].busy_s, share);
    add_share(sums[i].exchange_s, ranks[i].exchange_s, share);
    add_share(sums[i].hidden_s, ranks[i].hidden_s, share);
  }
}

std::vector<FamilyComparison> mean_families(const std::vector<Comparison>& steps) {
  std::map<std::string, FamilyComparison> sums;
  std::map<std::string, std::int64_t> instructions;
  const double share = 1 / static_cast<double>(steps.size());
  for (const Comparison& step : steps) {
    for (const FamilyComparison& family : step.families) {
      add_share(sums[family.family].seconds, family.seconds, share);
      instructions[family.family] += family.instructions;
    }
  }
  std::vector<FamilyComparison> means;
  for (const auto& [name, sum] : sums) {
    const std::int64_t count = std::llround(static_cast<double>(instructions[name]) * share);
    means.push_back({name, count, sum.seconds});
  }
  return means;
}

std::string size_text(const Comparison& step) {
  const std::size_t ranks = step.ranks.size() / static_cast<std::size_t>(step.stages);
  return step.stages == 1 ? std::to_string(ranks) : fmt::format("{} x {}", ranks, step.stages);
}

void require_alike(const Comparison& first, const Comparison& other) {
  if (other.plan != first.plan) {
    throw InputError(fmt::format("steps of two plans, '{}' and '{}', have no mean", first.plan, other.plan),
                     "compare them one by one");
  }
  if (other.ranks.size() != first.ranks.size() || other.stages != first.stages) {
    throw InputError(fmt::format("steps on {} and on {} ranks have no mean", size_text(first), size_text(other)),
                     "compare them one by one");
  }
}

double measured_kernels(const Comparison& comparison) {
  double seconds = 0;
  for (const Activity activity : activities_of_kernels) seconds += comparison.activities_s[index_of(activity)].measured;
  return seconds;
}

}  // namespace

double computed_seconds(const std::vector<Breakdown>& ranks) {
  DurationSum sum;
  for (const Breakdown& rank : ranks) {
    for (const Activity activity : activities_of_kernels) sum += rank[activity];
  }
  return ranks.empty() ? 0 : sum.seconds() / static_cast<double>(ranks.size());
}

std::string busy_machine_text(double predicted_share, double on_core_s, double kernels_s) {
  if (!(on_core_s > 0) || on_core_s >= least_of_predicted_cores * predicted_share * kernels_s) return "";
  return fmt::format(
      "kernels had a core {:.0f}% of their time, {:.0f}% was predicted: the machine is busy, and this comparison says "
      "little",
      100 * on_core_s / kernels_s, 100 * predicted_share);
}

std::optional<double> measured_core_share(const Comparison& comparison) {
  const double kernels_s = measured_kernels(comparison);
  if (!comparison.on_core_s || !(kernels_s > 0)) return std::nullopt;
  return comparison.on_core_s->measured / kernels_s;
}

std::string busy_machine_text(const Comparison& comparison) {
  if (!comparison.on_core_s) return "";
  return busy_machine_text(comparison.core_share, comparison.on_core_s->measured, measured_kernels(comparison));
}

std::optional<double> Pair::error() const {
  if (!(measured > 0)) return std::nullopt;
  return difference() / measured;
}

void sort_by_difference(std::vector<FamilyComparison>& families) {
  std::stable_sort(families.begin(), families.end(), [](const FamilyComparison& a, const FamilyComparison& b) {
    return std::abs(a.seconds.difference()) > std::abs(b.seconds.difference());
  });
}

std::string worker_name(const Comparison& comparison, std::size_t worker) {
  const auto stages = static_cast<std::size_t>(comparison.stages);
  return stages == 1 ? std::to_string(worker) : fmt::format("{}, stage {}", worker / stages, worker % stages);
}

std::vector<std::size_t> worst_ranks(const Comparison& comparison, std::size_t most) {
  const std::vector<RankComparison>& ranks = comparison.ranks;
  std::vector<std::size_t> worst(ranks.size());
  std::iota(worst.begin(), worst.end(), std::size_t{0});
  if (worst.size() <= most) return worst;
  std::stable_sort(worst.begin(), worst.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(ranks[a].busy_s.difference()) > std::abs(ranks[b].busy_s.difference());
  });
  worst.resize(most);
  return worst;
}

Comparison mean_of(const std::vector<Comparison>& steps) {
  HDPSIM_CHECK(!steps.empty(), "no steps have a mean");
  const double share = 1 / static_cast<double>(steps.size());
  Comparison mean{.plan = steps[0].plan,
                  .steps = {},
                  .runs = steps[0].runs,
                  .step_time_s = {},
                  .noise_floor_s = 0,
                  .core_share = 0,
                  .on_core_s = Pair{},
                  .at_pace_s = Pair{},
                  .families = mean_families(steps),
                  .stages = steps[0].stages,
                  .ranks = std::vector<RankComparison>(steps[0].ranks.size())};
  for (const Comparison& step : steps) {
    require_alike(steps[0], step);
    mean.steps.insert(mean.steps.end(), step.steps.begin(), step.steps.end());
    mean.runs = std::min(mean.runs, step.runs);
    add_share(mean.step_time_s, step.step_time_s, share);
    mean.core_share += step.core_share * share;
    if (!step.noise_floor_s) mean.noise_floor_s.reset();
    if (mean.noise_floor_s) *mean.noise_floor_s += *step.noise_floor_s * share;
    if (!step.on_core_s) mean.on_core_s.reset();
    if (mean.on_core_s) add_share(*mean.on_core_s, *step.on_core_s, share);
    if (!step.at_pace_s) mean.at_pace_s.reset();
    if (mean.at_pace_s) add_share(*mean.at_pace_s, *step.at_pace_s, share);
    add_ranks(mean.ranks, step.ranks, share);
    for (std::size_t i = 0; i < activity_count; ++i) add_share(mean.activities_s[i], step.activities_s[i], share);
  }
  sort_by_difference(mean.families);
  return mean;
}

}  // namespace hdpsim
