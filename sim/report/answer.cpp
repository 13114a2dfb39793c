#include "sim/report/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "sim/analysis/glossary.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/report/explanation_text.h"
#include "sim/results/confidence_text.h"
#include "sim/results/notes.h"
#include "sim/results/table.h"

namespace hdpsim {
namespace {

using RunList = std::vector<const Run*>;

double seconds(const Run& run) {
  return run.metrics.step_time_s.mean;
}

// Of a token, since plans may train unlike numbers of tokens a step; of a step without tokens.
double pace(const Run& run) {
  const double tokens = run.metrics.tokens_per_s;
  return tokens > 0 ? 1 / tokens : seconds(run);
}

bool is_faster(const Run* a, const Run* b) {
  return pace(*a) < pace(*b);
}

/// The runs of one point.
struct Race {
  RunList fitting;                ///< The fastest first.
  RunList others;                 ///< Those that do not fit, the fastest first.
  RunList refused;                ///< Those that have no figures.
  const Run* baseline = nullptr;  ///< If there is one and it fits.

  [[nodiscard]] const Run* winner() const { return fitting.empty() ? nullptr : fitting.front(); }
  /// The run that the winner is compared with: the baseline, or the next where the baseline wins or cannot run.
  [[nodiscard]] const Run* rival() const {
    if (baseline != nullptr && baseline != winner()) return baseline;
    return fitting.size() > 1 ? fitting[1] : nullptr;
  }
};

std::vector<Race> races_of(const std::vector<Run>& runs) {
  std::vector<Race> races;
  for (const Run& run : runs) {
    if (run.info.point >= races.size()) races.resize(run.info.point + 1);
    Race& race = races[run.info.point];
    if (run.is_refused()) {
      race.refused.push_back(&run);
      continue;
    }
    (run.metrics.fits ? race.fitting : race.others).push_back(&run);
    if (run.metrics.fits && run.metrics.speedup && run.metrics.speedup->versus == run.info.plan) race.baseline = &run;
  }
  for (Race& race : races) {
    std::stable_sort(race.fitting.begin(), race.fitting.end(), is_faster);
    std::stable_sort(race.others.begin(), race.others.end(), is_faster);
  }
  return races;
}

double times_as_fast(const Run& slower, const Run& faster) {
  return pace(slower) / pace(faster);
}

// " What shrinks is cp_comm, waiting for keys and values: 11.3 s less of a mean rank's step; then attention, ..."
std::string reason(const Run& winner, const Run& rival) {
  const Breakdown& own = winner.metrics.breakdown;
  std::string text;
  for (const auto& [activity, change] : differences(rival.metrics.breakdown, own, rival.metrics.breakdown.total())) {
    if (change >= Duration{}) continue;
    const std::string less = duration_text(Duration{} - change);
    if (!text.empty()) return text + fmt::format("; then {}, {} less.", activity_name(activity), less);
    text = fmt::format(" What shrinks is {}, {}: {} less of a mean rank's step", activity_name(activity),
                       activity_meaning(activity), less);
  }
  return text.empty() ? "" : text + ".";
}

std::string alone_text(const Run& run) {
  return fmt::format("{} takes {} a step: {}.", run.info.plan, seconds_text(seconds(run)),
                     largest_shares(run.metrics.breakdown));
}

// " Against the best static mesh of its tp and pp, static (a2a) with 172 s, it is 1.47 times as fast."
std::string against_best_static(const Run& winner) {
  if (!winner.is_over_another_static()) return "";
  const Run& best = *winner.best_static;
  return fmt::format(" Against the best static mesh of its tp and pp, {} with {}, it is {:.2f} times as fast.",
                     best.info.plan, seconds_text(seconds(best)), winner.metrics.over_best_static->speedup.mean);
}

std::string comparison_text(const Run& winner, const Run& rival) {
  return fmt::format("a step takes {}, with {} {}: {:.2f} times as fast.{}{}", seconds_text(seconds(winner)),
                     rival.info.plan, seconds_text(seconds(rival)), times_as_fast(rival, winner),
                     against_best_static(winner), reason(winner, rival));
}

// What the best of the plans that lose is not.
std::string_view better_than(const Race& race) {
  if (race.refused.empty()) return "that fits";
  return race.others.empty() ? "that is not refused" : "that is not refused and fits";
}

std::string none_runs(const Race& race) {
  if (race.others.empty()) return fmt::format("Every plan is refused: {}.", refusal_text(*race.refused.front()));
  const Run& first = *race.others.front();
  return fmt::format("No plan fits the memory: {} needs {}.", first.info.plan, memory_excess(first));
}

std::string lead_of_point(const Race& race) {
  if (race.winner() == nullptr) return none_runs(race);
  const Run& winner = *race.winner();
  const Run* rival = race.rival();
  const bool all_run = race.others.empty() && race.refused.empty();
  if (rival == nullptr && all_run) return alone_text(winner);
  if (rival == nullptr) {
    return fmt::format("{} is the only plan {}. {}", winner.info.plan, better_than(race), alone_text(winner));
  }
  const std::string fastest = all_run ? "the fastest plan" : fmt::format("the fastest plan {}", better_than(race));
  return fmt::format("{} is {}: {}", winner.info.plan, fastest, comparison_text(winner, *rival));
}

// "hdp-balance is the fastest plan at all 4 points"
std::string winners_text(const std::vector<Race>& races) {
  std::map<std::string, std::size_t> wins;
  for (const Race& race : races) ++wins[race.winner() == nullptr ? "" : race.winner()->info.plan];
  std::vector<std::pair<std::string, std::size_t>> order(wins.begin(), wins.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [plan, count] : order) {
    const std::string name = plan.empty() ? "no plan" : plan;
    if (count == races.size()) {
      return plan.empty() ? "No plan can run at any point"
                          : fmt::format("{} is the fastest plan at all {} points", name, count);
    }
    text += text.empty() ? fmt::format("{} is the fastest plan at {} of {} points", name, count, races.size())
                         : fmt::format(", {} at {}", name, count);
  }
  return text;
}

// " and 1.10 to 2.76 times as fast as the best static mesh of its tp and pp"
std::string range_over_best_static(const std::vector<double>& speedups) {
  if (speedups.empty()) return "";
  const auto [least, most] = std::minmax_element(speedups.begin(), speedups.end());
  return fmt::format(" and {:.2f} to {:.2f} times as fast as the best static mesh of its tp and pp", *least, *most);
}

std::string lead_of_sweep(const std::vector<Race>& races) {
  const Race* widest = nullptr;
  double least = 0;
  double most = 0;
  std::set<std::string> rivals;
  std::vector<double> over_best;
  for (const Race& race : races) {
    if (race.winner() == nullptr || race.rival() == nullptr) continue;
    const auto& best = race.winner()->metrics.over_best_static;
    if (best) over_best.push_back(best->speedup.mean);
    const double lead = times_as_fast(*race.rival(), *race.winner());
    if (widest == nullptr || lead > most) widest = &race;
    least = rivals.empty() ? lead : std::min(least, lead);
    most = std::max(most, lead);
    rivals.insert(race.rival()->info.plan);
  }
  if (widest == nullptr) return winners_text(races) + ".";
  return fmt::format("{}, {:.2f} to {:.2f} times as fast as {}{}. The lead is widest at {}: {}", winners_text(races),
                     least, most, rivals.size() == 1 ? *rivals.begin() : "the baseline or the next plan",
                     range_over_best_static(over_best), point_text(widest->winner()->info),
                     comparison_text(*widest->winner(), *widest->rival()));
}

// ---- How sure it is

std::string spread_text(const Run& run) {
  const RunMetrics& metrics = run.metrics;
  if (metrics.speedup && metrics.uncertainty && metrics.uncertainty->speedup) {
    const Uncertainty& found = *metrics.uncertainty;
    const std::string unknown =
        found.unknown.empty() ? "batches and the profile's errors of costs are in it"
                              : fmt::format("batches and the profile's errors of costs are in it, but not those of {}",
                                            joined(found.unknown, ", "));
    return fmt::format("over {} samples the speed-up of {} over {} is {:.2f} to {:.2f} (p5 to p95); {}.", found.samples,
                       run.info.plan, metrics.speedup->versus, found.speedup->p5, found.speedup->p95, unknown);
  }
  if (metrics.steps == 1) return "one step was simulated: how much batches differ is not known.";
  const bool compared = metrics.speedup && metrics.speedup->versus != run.info.plan;
  const std::string figure =
      compared ? fmt::format("the speed-up of {} over {} is {:.2f} to {:.2f}", run.info.plan, metrics.speedup->versus,
                             metrics.speedup->p5, metrics.speedup->p95)
               : fmt::format("a step of {} takes {} to {}", run.info.plan, seconds_text(metrics.step_time_s.p5),
                             seconds_text(metrics.step_time_s.p95));
  return fmt::format("over {} steps {} (p5 to p95): that is how much batches differ.", metrics.steps, figure);
}

std::string evidence_words(std::size_t kind) {
  switch (static_cast<Evidence>(kind)) {
    case Evidence::measured:
      return "measured samples";
    case Evidence::interpolated:
      return "interpolation between samples";
    case Evidence::extrapolated:
      return "extrapolation beyond them";
    case Evidence::formula:
      return "formulas and waiting";
  }
  return "";
}

std::string costs_text(const Run& run) {
  std::vector<std::string> parts;
  for (std::size_t kind = 0; kind < evidence_kinds; ++kind) {
    const double share = run.metrics.evidence[kind];
    if (share >= 0.005) parts.push_back(fmt::format("{:.0f}% on {}", 100 * share, evidence_words(kind)));
  }
  return fmt::format("Costs are those of {}. The time of {} rests to {}.", run.info.profile, run.info.plan,
                     joined(parts, ", to "));
}

std::string capitalised(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// A note as a sentence; a plan at its beginning keeps its name.
std::string sentence(const std::string& note, const std::vector<Run>& runs) {
  const auto begins_it = [&](const Run& run) { return note.starts_with(run.info.plan); };
  return (std::any_of(runs.begin(), runs.end(), begins_it) ? note : capitalised(note)) + ".";
}

}  // namespace

Answer answer_of(const std::vector<Run>& runs, const RunAdvice& advice) {
  if (runs.empty()) return {};
  const std::vector<Race> races = races_of(runs);
  Answer answer{races.size() == 1 ? lead_of_point(races.front()) : lead_of_sweep(races), {}};
  for (const std::string& line : result_notes(runs, advice)) answer.notes.push_back(sentence(line, runs));
  const auto has_winner = [](const Race& race) { return race.winner() != nullptr; };
  const auto last = std::find_if(races.rbegin(), races.rend(), has_winner);
  const auto ran = std::find_if(runs.rbegin(), runs.rend(), [](const Run& run) { return !run.is_refused(); });
  if (ran == runs.rend()) return answer;
  const Run& told = last == races.rend() ? *ran : *last->winner();
  const std::string at = races.size() > 1 ? fmt::format("at {}, ", point_text(told.info)) : "";
  answer.notes.push_back(capitalised(at + confidence_sentence(told)));
  answer.notes.push_back(capitalised(at + spread_text(told)));
  answer.notes.push_back(costs_text(told));
  return answer;
}

}  // namespace hdpsim
