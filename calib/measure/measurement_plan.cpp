#include "calib/measure/measurement_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "calib/measure/collect.h"
#include "calib/measure/impl/grid.h"
#include "calib/measure/workload.h"

namespace hdpsim::calib {
namespace {

// Shares of a calibration's time. Attention decides the cost of long contexts.
constexpr double attention_share = 0.4;
constexpr double gemm_share = 0.2;
constexpr double memory_bound_share = 0.2;
constexpr double copy_share = 0.05;
constexpr double message_share = 0.15;
constexpr double interference_share = 0.2;

// The largest sizes of a level would use up the budget; a part of it stays for the later levels.
constexpr std::array<double, 3> kept_for_later_levels = {0.5, 0.25, 0.1};

// Only this part of a time limit is planned: estimates of measuring times are inexact, and subjects whose rounds do not
// agree are measured again.
constexpr double planned_share = 0.5;
constexpr double least_sampling_s = 0.005;

// On a shared device all measurements at one time are disturbed alike: many short rounds, spread over the whole
// calibration, show more than a few long ones.
constexpr double shared_sampling_share = 0.25;
constexpr int shared_rounds = 4;
constexpr int shared_least_rounds = 10;
constexpr int shared_most_rounds = 100;

constexpr double launch_s = 5e-6;
constexpr double preparing_share = 0.1;  // of the usual bandwidth: random tensors in fresh memory
constexpr double interference_s = 0.1;
constexpr double wire_bandwidth = 3e9;  // cautious estimate for copies and messages
constexpr double message_latency_s = 50e-6;

/// A rough estimate of the time of one run, for planning.
struct RunEstimate {
  const DeviceSpeed& speed;
  double operator()(const Attention& op) const { return launch_s + flops_of(op).count() / speed.usual_flops; }
  double operator()(const Gemm& op) const { return launch_s + flops_of(op).count() / speed.usual_flops; }
  double operator()(const MemoryBoundSubject& op) const {
    return launch_s + static_cast<double>(op.bytes) / speed.usual_bandwidth;
  }
  double operator()(const CopySubject& op) const { return launch_s + static_cast<double>(op.bytes) / wire_bandwidth; }
  double operator()(const MessageSubject& op) const {
    return message_latency_s + static_cast<double>(op.bytes) / wire_bandwidth;
  }
  double operator()(const InterferenceSubject&) const { return interference_s; }
};

class Planner {
 public:
  Planner(const Device& device, kernels::Element element, const DeviceSpeed& speed, const Wishes& wishes)
      : device_(device), element_(element), speed_(speed), wishes_(wishes) {}

  void take(std::vector<Candidate> candidates, double budget_s) { take(choices_of(std::move(candidates)), budget_s); }

  /// Takes kernels so that every curve gets the samples that it needs.
  void take_kernels(std::vector<Candidate> candidates, double budget_s) {
    std::vector<Choice> choices = choices_of(std::move(candidates));
    const std::size_t first = plan_.size();
    take(choices, budget_s);
    std::map<std::string, std::size_t> samples;
    for (std::size_t index = first; index < plan_.size(); ++index) {
      plan_[index].essential = ++samples[curve_of(plan_[index].subject)] <= least_samples;
    }
    std::stable_sort(choices.begin(), choices.end(),
                     [](const Choice& a, const Choice& b) { return a.expected_s < b.expected_s; });
    for (const Choice& choice : choices) {
      std::size_t& count = samples[curve_of(choice.candidate.subject)];
      if (count >= least_samples || !take(choice)) continue;
      plan_.back().essential = true;
      ++count;
    }
  }

  [[nodiscard]] std::vector<Planned> plan() { return std::move(plan_); }

 private:
  struct Choice {
    Candidate candidate;
    double expected_s;
  };

  /// The most important ones first, and among these the cheap ones.
  [[nodiscard]] std::vector<Choice> choices_of(std::vector<Candidate> candidates) const {
    std::vector<Choice> choices;
    choices.reserve(candidates.size());
    for (Candidate& candidate : candidates) {
      const double expected = expected_s(candidate.subject);
      choices.push_back({std::move(candidate), expected});
    }
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return std::tie(a.candidate.level, a.expected_s) < std::tie(b.candidate.level, b.expected_s);
    });
    return choices;
  }

  void take(const std::vector<Choice>& choices, double budget_s) {
    const double budget = budget_s / wishes_.rounds;
    double left = budget;
    for (const Choice& choice : choices) {
      const auto level = static_cast<std::size_t>(choice.candidate.level);
      const double kept_for_later = level < kept_for_later_levels.size() ? kept_for_later_levels[level] : 0;
      if (choice.expected_s > left - kept_for_later * budget) continue;
      if (take(choice)) left -= choice.expected_s;
    }
  }

  [[nodiscard]] double expected_s(const Subject& subject) const {
    const bool cold = starts_cold(device_, subject);
    const double run = std::visit(RunEstimate{speed_}, subject) + (cold ? speed_.emptying_s : 0);
    const double warm_up = cold ? run : std::min(3 * run, run + 0.1);
    // Noise may use all the time that it is allowed.
    const double sampling = std::max(wishes_.sampling_s, static_cast<double>(wishes_.long_runs) * run);
    return (warm_up + sampling) / speed_.available +
           static_cast<double>(memory_of(subject, element_)) / (preparing_share * speed_.usual_bandwidth);
  }

  bool take(const Choice& choice) {
    const Subject& subject = choice.candidate.subject;
    if (memory_of(subject, element_) > speed_.memory_bytes) return false;
    if (!taken_.insert(subject_text(subject)).second) return false;
    plan_.push_back({.subject = subject, .expected_s = choice.expected_s, .level = choice.candidate.level});
    return true;
  }

  const Device& device_;
  kernels::Element element_;
  const DeviceSpeed& speed_;
  const Wishes& wishes_;
  std::set<std::string> taken_;
  std::vector<Planned> plan_;
};

std::vector<Candidate> all_of(const std::vector<InterferenceSubject>& pairs) {
  std::vector<Candidate> candidates;
  candidates.reserve(pairs.size());
  for (const InterferenceSubject& pair : pairs) candidates.emplace_back(pair, 0);
  return candidates;
}

}  // namespace

Wishes full_wishes() {
  return {};
}

Wishes quick_wishes() {
  return {.budget_s = 40, .time_limit_s = 80, .sampling_s = 0.06, .noise = 0.01};
}

Wishes wishes_within(double seconds, Wishes wishes) {
  wishes.time_limit_s = seconds;
  const double budget = std::min(wishes.budget_s, planned_share * seconds);
  wishes.sampling_s = std::max(least_sampling_s, wishes.sampling_s * budget / wishes.budget_s);
  wishes.budget_s = budget;
  return wishes;
}

Wishes wishes_on(const DeviceSpeed& speed, Wishes wishes) {
  wishes.sampling_s *= speed.available;
  if (speed.shared) {
    wishes.sampling_s *= shared_sampling_share;
    wishes.long_runs = 1;
    wishes.rounds = shared_rounds;
    wishes.least_rounds = shared_least_rounds;
    wishes.most_rounds = shared_most_rounds;
  }
  wishes.sampling_s = std::max(least_sampling_s, wishes.sampling_s);
  return wishes;
}

std::vector<Planned> plan_measurements(Device& device, const DeviceSpeed& speed, const Wishes& wishes) {
  const kernels::Element element = device.backend().element();
  const auto copies = copy_grid(device.copy_kinds());
  const auto messages = message_grid(wishes.messages ? device.rank_counts() : std::vector<std::int64_t>{});
  const auto pairs = all_of(device.interference());
  double shares = attention_share + gemm_share + memory_bound_share;
  if (!copies.empty()) shares += copy_share;
  if (!messages.empty()) shares += message_share;
  if (!pairs.empty()) shares += interference_share;
  const double budget = wishes.budget_s / shares;

  Planner planner(device, element, speed, wishes);
  planner.take_kernels(attention_grid(wishes.model, speed, wishes.seed), budget * attention_share);
  planner.take_kernels(gemm_grid(wishes.model), budget * gemm_share);
  planner.take_kernels(memory_bound_grid(speed, element), budget * memory_bound_share);
  planner.take(copies, budget * copy_share);
  planner.take(messages, budget * message_share);
  planner.take(pairs, budget * interference_share);
  return planner.plan();
}

StoppingRule stopping_rule(const Wishes& wishes) {
  return {wishes.noise, {.least_long_runs = wishes.long_runs, .most_s = wishes.sampling_s}};
}

}  // namespace hdpsim::calib
