#include "sim/results/result_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "sim/analysis/memory_verdict.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/values.h"
#include "sim/plan/plan_check.h"
#include "sim/results/notes.h"
#include "sim/run/explain.h"

namespace hdpsim {
namespace {

constexpr std::size_t most_memory_parts = 4;
constexpr double much_waiting = 0.25;    // share of the time
constexpr double few_micro_batches = 4;  // per rank and step: with fewer there is little to balance

// "activations 41.0 GB, optimizer 12.1 GB, parameters 8.1 GB"
std::string largest_parts(const MemoryParts& parts) {
  std::array<MemoryPart, memory_parts> order{};
  for (std::size_t i = 0; i < memory_parts; ++i) order[i] = static_cast<MemoryPart>(i);
  std::stable_sort(order.begin(), order.end(), [&](MemoryPart a, MemoryPart b) { return parts[a] > parts[b]; });
  std::vector<std::string> texts;
  for (const MemoryPart part : order) {
    if (texts.size() == most_memory_parts || parts[part] == Bytes{}) break;
    texts.push_back(fmt::format("{} {}", memory_part_name(part), bytes_text(parts[part])));
  }
  return joined(texts, ", ");
}

std::string excess_of_capacity(const Run& run) {
  return capacity_excess(run.metrics.tokens_held, run.info.capacity);
}

bool exceeds_capacity(const Run& run) {
  return !excess_of_capacity(run).empty();
}

// What was found for a run, after the words that say what it does; nothing if nothing was tried.
std::string help_for(std::size_t run, const RunAdvice& advice, std::string_view helps, std::string_view fails) {
  const auto found = advice.find(run);
  if (found == advice.end()) return "";
  return found->second.empty() ? fmt::format("; {}", fails) : fmt::format("; {} {}", helps, best_advice(found->second));
}

/// Runs of one plan that do not fit.
struct Misfits {
  std::string plan;
  std::size_t count = 0;
  std::size_t fullest = 0;  ///< Index of a run.
};

std::vector<Misfits> misfits_of(const std::vector<Run>& runs) {
  std::vector<Misfits> found;
  const auto fullness = [&](std::size_t run) {
    const RunMetrics& metrics = runs[run].metrics;
    return std::tuple(metrics.tokens_held, metrics.memory.device, metrics.memory.host);
  };
  for (std::size_t run = 0; run < runs.size(); ++run) {
    if (runs[run].metrics.fits) continue;
    const std::string& plan = runs[run].info.plan;
    auto same = std::find_if(found.begin(), found.end(), [&](const Misfits& each) { return each.plan == plan; });
    if (same == found.end()) same = found.insert(found.end(), {plan, 0, run});
    ++same->count;
    if (fullness(run) > fullness(same->fullest)) same->fullest = run;
  }
  return found;
}

std::size_t runs_of(const std::vector<Run>& runs, const std::string& plan) {
  const auto is_of_plan = [&](const Run& run) { return run.info.plan == plan; };
  return static_cast<std::size_t>(std::count_if(runs.begin(), runs.end(), is_of_plan));
}

// Runs that do not fit, a line per plan: how many, what fills the fullest device, and what would help there.
std::string memory_lines(const std::vector<Run>& runs, const RunAdvice& advice) {
  std::string text;
  for (const Misfits& misfits : misfits_of(runs)) {
    const Run& fullest = runs[misfits.fullest];
    const std::string parts = exceeds_capacity(fullest) ? "" : largest_parts(fullest.metrics.memory.parts);
    const std::string of_which = parts.empty() ? "" : fmt::format(", of it {}", parts);
    const std::string help = help_for(misfits.fullest, advice, "it fits with", "no change that was tried makes it fit");
    const std::size_t all = runs_of(runs, misfits.plan);
    const std::string savings = exceeds_capacity(fullest) ? "" : likely_savings(fullest);
    const std::string perhaps = savings.empty() ? "" : "; " + savings;
    if (all == 1) {
      text += fmt::format("{} does not fit: {}{}{}{}\n", plan_at_point(fullest), memory_excess(fullest), of_which, help,
                          perhaps);
    } else {
      text += fmt::format("{} does not fit at {} of {} points: up to {}{}{}{}\n", misfits.plan, misfits.count, all,
                          memory_excess(fullest), of_which, help, perhaps);
    }
  }
  return text;
}

// The first run of each plan that was refused.
std::vector<std::size_t> first_refused(const std::vector<Run>& runs) {
  std::vector<std::size_t> found;
  std::set<std::string> plans;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    if (runs[run].is_refused() && plans.insert(runs[run].info.plan).second) found.push_back(run);
  }
  return found;
}

// Runs that were refused, a line per plan: where it is named, what its policy says of the first of them, and what helps
// or else what the policy suggests.
std::string refusal_lines(const std::vector<Run>& runs, const RunAdvice& advice) {
  std::string text;
  for (const std::size_t run : first_refused(runs)) {
    const std::string& plan = runs[run].info.plan;
    const std::size_t all = runs_of(runs, plan);
    const auto count = std::count_if(runs.begin(), runs.end(),
                                     [&](const Run& other) { return other.is_refused() && other.info.plan == plan; });
    const std::string where = all == 1 ? "" : fmt::format(" at {} of {} points", count, all);
    const std::string& suggested = runs[run].result.refusal->help;
    std::string help = help_for(run, advice, "it runs with", "no change that was tried lets it run");
    if (help.empty() && !suggested.empty()) help = "; " + suggested;
    text += fmt::format("{} is refused{}: {}{}\n", plan, where, refusal_text(runs[run]), help);
  }
  return text;
}

std::string baseline_lines(const std::vector<Run>& runs) {
  const std::vector<std::string> notes = baseline_notes(runs);
  return notes.empty() ? "" : fmt::format("{}\n", joined(notes, "\n"));
}

// Micro-batches per rank and step if each is filled to the rank's capacity.
double micro_batches_a_rank(const Run& run) {
  double tokens = 0;
  for (const StepResult& step : run.result.steps) tokens += static_cast<double>(step.tokens);
  const auto workers = static_cast<double>(run.result.ranks.size());
  const double ranks = workers / static_cast<double>(run.info.stages);
  return tokens / static_cast<double>(run.metrics.steps) / (ranks * static_cast<double>(run.info.capacity));
}

bool is_starved(const Run& run) {
  const Breakdown& time = run.metrics.breakdown;
  const bool waits = time[Activity::group_wait].seconds() > much_waiting * time.total().seconds();
  return run.metrics.fits && run.info.capacity > 0 && waits && micro_batches_a_rank(run) < few_micro_batches;
}

// Of each plan whose ranks wait for each other because they have too few micro-batches to balance, the run with the
// fewest.
std::vector<std::size_t> starved_runs(const std::vector<Run>& runs) {
  std::map<std::string, std::size_t> found;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    if (!is_starved(runs[run])) continue;
    const auto [other, is_new] = found.emplace(runs[run].info.plan, run);
    const bool has_fewer = micro_batches_a_rank(runs[run]) < micro_batches_a_rank(runs[other->second]);
    if (!is_new && has_fewer) other->second = run;
  }
  std::vector<std::size_t> all;
  for (const auto& [plan, run] : found) all.push_back(run);
  return all;
}

}  // namespace

std::string problem_lines(const std::vector<Run>& runs, const RunAdvice& advice) {
  return refusal_lines(runs, advice) + memory_lines(runs, advice) + risk_lines(runs) + baseline_lines(runs);
}

std::string starved_lines(const std::vector<Run>& runs, const RunAdvice& advice) {
  std::vector<std::string> plans;
  double fewest = few_micro_batches;
  std::string help;
  for (const std::size_t run : starved_runs(runs)) {
    plans.push_back(runs[run].info.plan);
    fewest = std::min(fewest, micro_batches_a_rank(runs[run]));
    const auto found = advice.find(run);
    if (found == advice.end() || found->second.empty()) continue;
    help += fmt::format("what helps {}: {}\n", plan_at_point(runs[run]), best_advice(found->second));
  }
  if (plans.empty()) return "";
  return fmt::format(
             "{}: group_wait is more than {:.0f}% where a step has as little as {:.2g} micro-batches for each rank, "
             "too few to balance\n",
             joined(plans, ", "), 100 * much_waiting, fewest) +
         help;
}

std::vector<std::string> result_notes(const std::vector<Run>& runs, const RunAdvice& advice) {
  std::istringstream text(problem_lines(runs, advice) + starved_lines(runs, advice));
  std::vector<std::string> notes;
  for (std::string line; std::getline(text, line);) notes.push_back(line);
  return notes;
}

std::vector<std::size_t> runs_in_need(const std::vector<Run>& runs) {
  std::set<std::size_t> all;
  for (const std::size_t run : first_refused(runs)) all.insert(run);
  for (const Misfits& misfits : misfits_of(runs)) all.insert(misfits.fullest);
  for (const std::size_t run : starved_runs(runs)) all.insert(run);
  return {all.begin(), all.end()};
}

RunAdvice advice_in_need(const Study& study, const std::vector<Run>& runs, AdviceOptions options) {
  options.most_together = 2;
  RunAdvice advice;
  const std::vector<std::size_t> chosen = runs_in_need(runs);
  if (!is_cheap_to_advise(study, chosen)) return advice;
  for (const std::size_t run : chosen) {
    advice.emplace(run, advice_for(study, runs, run, typical_step(runs[run]), options));
  }
  return options.stop() ? RunAdvice{} : advice;
}

std::string memory_excess(const Run& run) {
  if (run.metrics.fits) return {};
  if (exceeds_capacity(run)) return excess_of_capacity(run);
  return excess_text(run.metrics.memory, limits_of(run.info));
}

}  // namespace hdpsim
