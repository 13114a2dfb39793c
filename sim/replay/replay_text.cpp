#include "sim/replay/replay_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/results/notes.h"

namespace hdpsim {
namespace {

std::string window_lengths(const ReplayResult& result, const WindowRow& window) {
  return fmt::format("{} ({:.2f} times that of all steps) in {}", short_number(window.weighted_length),
                     window.weighted_length / result.summary.lengths.weighted_length, steps_text(window));
}

}  // namespace

const std::string& baseline_of(const ReplayResult& result) {
  return result.plans[result.summary.rules.baseline];
}

std::optional<double> over_best_static(const ReplayResult& result, std::size_t plan) {
  if (!result.best_static) return std::nullopt;
  return result.summary.plans[plan].speedup * result.best_static->share;
}

std::string best_static_sentence(const ReplayResult& result) {
  if (!result.best_static) return "";
  const BestStaticShare& best = *result.best_static;
  const std::string& baseline = baseline_of(result);
  if (best.plan == baseline)
    return fmt::format("Over best: {} ({}) shares a sequence in the way that is fastest on its tp and pp.", baseline,
                       best.sharing);
  const std::string of_steps = best.steps == result.summary.rules.steps
                                   ? "all steps"
                                   : fmt::format("{} steps spread over the replay", best.steps);
  return fmt::format(
      "Over best: over {}, the fastest sharing on the same tp and pp, which takes {:.2f} of the time of {} in {}.",
      best.plan, best.share, baseline, of_steps);
}

std::string steps_text(const WindowRow& window) {
  return window.first == window.last ? fmt::format("step {}", window.first)
                                     : fmt::format("steps {} to {}", window.first, window.last);
}

std::string lengths_sentence(const ReplayResult& result) {
  const ReplaySummary& summary = result.summary;
  const BatchFigures& all = summary.lengths;
  std::string text = fmt::format(
      "{} sequences, {} tokens on average, the longest {}. The sequence of a token has {} tokens on average",
      all.sequences, short_number(static_cast<double>(all.tokens) / static_cast<double>(all.sequences)),
      count_text(all.longest), short_number(all.weighted_length));
  // One window is all steps.
  if (summary.shortest.first != summary.longest.first) {
    text += fmt::format("; over {} steps between {} and {}", summary.rules.window,
                        window_lengths(result, summary.shortest), window_lengths(result, summary.longest));
  }
  text += ".";
  if (!result.trace) return text;
  for (const std::string& note : trace_notes(*result.trace)) {
    text += fmt::format(" {}{}.", static_cast<char>(std::toupper(static_cast<unsigned char>(note[0]))), note.substr(1));
  }
  return text;
}

std::string lead_sentence(const ReplayResult& result, std::size_t plan) {
  const ReplayRules& rules = result.summary.rules;
  const PlanSummary& summary = result.summary.plans[plan];
  const auto name = [&](std::size_t each) {
    return result.plans[each] + (result.summary.plans[each].does_not_fit == 0 ? "" : " (which does not fit)");
  };
  const std::string what =
      fmt::format("{} times as fast as {}, over {} steps", rules.threshold, name(rules.baseline), rules.window);
  if (summary.stretches == 0) {
    return fmt::format(
        "{} is {:.2f} times as fast as {} or more over any {} steps, the least in {}: above {} everywhere.", name(plan),
        summary.least->speedup, name(rules.baseline), rules.window, steps_text(*summary.least), rules.threshold);
  }
  return fmt::format("{} is less than {}, in {} stretch{} of {} of the {} steps:", name(plan), what, summary.stretches,
                     summary.stretches == 1 ? "" : "es", summary.steps_in_them, rules.steps);
}

std::string stretch_sentence(const ReplayResult& result, const Stretch& stretch) {
  const WindowRow& all = stretch.all;
  return fmt::format(
      "{}: {:.2f} times as fast, {:.2f} in {}; the sequence of a token has {} tokens, {:.2f} times that of all steps, "
      "the longest {}; {:.0f}% of the time is group wait",
      steps_text(all), all.speedup, stretch.lowest.speedup, steps_text(stretch.lowest),
      short_number(all.weighted_length), all.weighted_length / result.summary.lengths.weighted_length,
      count_text(all.longest), 100 * all.group_wait_share);
}

std::string step_sentence(const ReplayResult& result, const StepCause& cause) {
  const ReplaySummary& summary = result.summary;
  return text_of(cause, summary.plans[cause.row.plan].mean_s,
                 summary.lengths.squares() / static_cast<double>(summary.rules.steps));
}

std::string unfit_text(const ReplayResult& result, std::size_t plan) {
  const PlanSummary& summary = result.summary.plans[plan];
  const ReplayRules& rules = result.summary.rules;
  if (summary.does_not_fit == 0) return "";
  return fmt::format(
      "does not fit in {} of {} steps: up to {:.1f} of {:.1f} GB on a device, {:.1f} of {:.1f} GB of the "
      "host",
      summary.does_not_fit, rules.steps, summary.device_gb, rules.device_gb, summary.host_gb, rules.host_gb);
}

std::string risk_text(const ReplayResult& result, std::size_t plan) {
  const PlanSummary& summary = result.summary.plans[plan];
  const ReplayRules& rules = result.summary.rules;
  if (summary.at_risk == 0) return "";
  return fmt::format(
      "memory at risk in {} of {} steps: up to {:.1f} of {:.1f} GB on a device where the allocator leaves the largest "
      "gaps that were measured",
      summary.at_risk, rules.steps, summary.device_at_most_gb, rules.device_gb);
}

std::size_t best_plan(const ReplayResult& result) {
  const auto& plans = result.summary.plans;
  const auto better = [](const PlanSummary& a, const PlanSummary& b) {
    return std::pair(a.does_not_fit > 0, a.mean_s) < std::pair(b.does_not_fit > 0, b.mean_s);
  };
  return static_cast<std::size_t>(std::min_element(plans.begin(), plans.end(), better) - plans.begin());
}

std::string best_sentence(const ReplayResult& result) {
  const auto& plans = result.summary.plans;
  const PlanSummary& best = plans[best_plan(result)];
  if (best.does_not_fit > 0) return "No plan fits in all steps.";
  const std::string& name = result.plans[best_plan(result)];
  const bool all_fit = std::all_of(plans.begin(), plans.end(), [](const auto& plan) { return plan.does_not_fit == 0; });
  const std::string_view of_those = all_fit ? "" : " among those that fit";
  if (best.fastest == result.summary.rules.steps) {
    return fmt::format("{} is the fastest plan of every step{}.", name, of_those);
  }
  return fmt::format("The fastest plan of every step{} would take {} a step, {:.1f}% less than {} everywhere.",
                     of_those, seconds_text(result.summary.best_mean_s),
                     100 * (1 - result.summary.best_mean_s / best.mean_s), name);
}

}  // namespace hdpsim
