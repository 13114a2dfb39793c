#include "sim/results/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "sim/analysis/memory_verdict.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/values.h"
#include "sim/plan/plan_check.h"
#include "sim/results/advice_text.h"
#include "sim/results/baseline_note.h"
#include "sim/results/risk_note.h"
#include "sim/results/trace_notes.h"
#include "sim/run/explain.h"

namespace hdpsim {
namespace {

constexpr double share_worth_naming = 0.02;
constexpr std::size_t most_shares = 4;
constexpr std::size_t most_memory_parts = 4;
constexpr double much_waiting = 0.25;    // share of the time
constexpr double few_micro_batches = 4;  // per rank and step: with fewer there is little to balance

struct Column {
  std::string title;
  bool left = false;
};

using Row = std::vector<std::string>;

std::size_t widest(const std::vector<Row>& rows, const Column& column, std::size_t index) {
  std::size_t width = column.title.size();
  for (const Row& row : rows) width = std::max(width, row[index].size());
  return width;
}

std::string line(const Row& row, const std::vector<Column>& columns, const std::vector<std::size_t>& widths) {
  std::string text = " ";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    text += columns[i].left ? fmt::format(" {:<{}} ", row[i], widths[i]) : fmt::format(" {:>{}} ", row[i], widths[i]);
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text += '\n';
}

/// The speed-ups that a table has a column of.
struct SpeedupColumns {
  bool stated = false;     ///< Over the baseline.
  bool over_best = false;  ///< Over the best static mesh.
  [[nodiscard]] std::size_t count() const { return std::size_t{stated} + std::size_t{over_best}; }
};

SpeedupColumns speedups_of(const std::vector<Run>& runs) {
  SpeedupColumns columns;
  for (const Run& run : runs) {
    columns.stated |= run.metrics.speedup.has_value();
    columns.over_best |= run.metrics.over_best_static.has_value();
  }
  return columns;
}

Row refused_row(const Run& run, const SpeedupColumns& speedups) {
  const Refusal& refusal = *run.result.refusal;
  Row row = {run.info.plan, "-", "-", "-", fmt::format("refused: {} (step {})", refusal.message, refusal.step)};
  row.insert(row.begin() + 3, speedups.count(), "-");
  return row;
}

// Figures of a plan that cannot run stand in brackets, and it has no speed-up.
Row row_of(const Run& run, const SpeedupColumns& speedups) {
  if (run.is_refused()) return refused_row(run, speedups);
  const RunMetrics& metrics = run.metrics;
  const auto figure = [&](const std::string& text) { return metrics.fits ? text : fmt::format("({})", text); };
  const auto add_speedup = [&](const Speedup* speedup, Row& row) {
    row.push_back(metrics.fits && speedup != nullptr ? fmt::format("{:.2f}x", speedup->mean) : "-");
  };
  Row row = {run.info.plan, figure(duration_text(metrics.breakdown.total())),
             figure(short_number(metrics.tokens_per_s))};
  if (speedups.stated) add_speedup(metrics.speedup ? &*metrics.speedup : nullptr, row);
  if (speedups.over_best) {
    add_speedup(metrics.over_best_static ? &metrics.over_best_static->speedup : nullptr, row);
  }
  row.push_back(figure(fmt::format("{:.1f}%", 100 * metrics.mfu)));
  const std::string excess = metrics.fits ? "" : fmt::format("does not fit: {}; ", memory_excess(run));
  const std::string risk = fit_of(run) == MemoryFit::at_risk ? "memory at risk; " : "";
  row.push_back(excess + risk + largest_shares(metrics.breakdown));
  return row;
}

std::vector<Column> columns_of(const SpeedupColumns& speedups) {
  std::vector<Column> columns = {{"plan", true}, {"step time"}, {"tokens/s"}};
  if (speedups.stated) columns.push_back({"speed-up"});
  if (speedups.over_best) columns.push_back({"over best"});
  columns.push_back({"MFU"});
  columns.push_back({"where the time goes", true});
  return columns;
}

std::string point_title(const RunInfo& info, bool with_setting) {
  std::vector<std::string> parts;
  for (const auto& coordinate : info.coordinates) {
    parts.push_back(fmt::format("{} {}", coordinate.path, line_of(coordinate.value)));
  }
  if (with_setting) parts.push_back(info.setting);
  return joined(parts, ", ");
}

bool same_for_all(const std::vector<Run>& runs, std::string RunInfo::*field) {
  return std::all_of(runs.begin(), runs.end(), [&](const Run& run) { return run.info.*field == runs[0].info.*field; });
}

// A baseline that is none of the study's runs: tuned, or the best static mesh.
const Run* baseline_beside(const Run& run) {
  if (run.tuned_baseline) return run.tuned_baseline.get();
  return run.is_over_another_static() ? run.best_static.get() : nullptr;
}

// Such baselines stand below the plans of their point.
std::vector<const Run*> with_baselines(const std::vector<Run>& runs) {
  std::vector<const Run*> shown;
  const Run* baseline = nullptr;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    shown.push_back(&runs[i]);
    if (const Run* beside = baseline_beside(runs[i])) baseline = beside;
    const bool ends_point = i + 1 == runs.size() || runs[i + 1].info.point != runs[i].info.point;
    if (ends_point && baseline != nullptr) shown.push_back(std::exchange(baseline, nullptr));
  }
  return shown;
}

std::string percents(double least, double most) {
  const std::string low = fmt::format("{:.0f}", 100 * least);
  const std::string high = fmt::format("{:.0f}", 100 * most);
  return low == high ? low + "%" : fmt::format("{}-{}%", low, high);
}

// The least and the most over the runs: "interpolated 62-91%, formula 9-38%".
std::string evidence_line(const std::vector<Run>& runs) {
  std::vector<std::string> parts;
  for (std::size_t kind = 0; kind < evidence_kinds; ++kind) {
    double least = 1;
    double most = 0;
    for (const Run& run : runs) {
      if (run.is_refused()) continue;
      least = std::min(least, run.metrics.evidence[kind]);
      most = std::max(most, run.metrics.evidence[kind]);
    }
    if (most == 0) continue;
    parts.push_back(fmt::format("{} {}", evidence_name(static_cast<Evidence>(kind)), percents(least, most)));
  }
  return joined(parts, ", ");
}

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

std::string plan_at_point(const Run& run) {
  const std::string point = point_title(run.info, false);
  return point.empty() ? run.info.plan : fmt::format("{} at {}", run.info.plan, point);
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
    const std::string savings = exceeds_capacity(fullest) ? "" : not_modelled_savings(fullest);
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

// Each note once, however many runs it is true of.
std::string trace_lines(const std::vector<Run>& runs) {
  std::vector<std::string> lines;
  for (const Run& run : runs) {
    if (!run.info.trace) continue;
    for (const std::string& note : trace_notes(*run.info.trace)) {
      if (std::find(lines.begin(), lines.end(), note) == lines.end()) lines.push_back(note);
    }
  }
  return lines.empty() ? "" : fmt::format("{}\n", joined(lines, "\n"));
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

// One line for all of them, and what helps each of their plans.
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

std::string hours(double seconds) {
  return seconds < 3600 ? fmt::format("{:.1f} min", seconds / 60) : fmt::format("{:.1f} h", seconds / 3600);
}

std::string goodput_lines(const std::vector<Run>& runs) {
  std::string text;
  for (const Run& run : runs) {
    if (!run.metrics.goodput) continue;
    const Goodput& goodput = *run.metrics.goodput;
    text += fmt::format(
        "{}: goodput {:.1f}% (simulated {:.1f} +- {:.1f}%), a failure every {}, a checkpoint every {} {} "
        "(Daly {}, Young {})\n",
        plan_at_point(run), 100 * goodput.share, 100 * goodput.simulated, 100 * goodput.simulated_error,
        hours(goodput.mtbf_s), goodput.every_steps, goodput.every_steps == 1 ? "step" : "steps", hours(goodput.daly_s),
        hours(goodput.young_s));
  }
  return text;
}

// The largest shares of the variance: "attention_backward 61%, batches 30%".
std::string variance_text(const Uncertainty& uncertainty) {
  std::vector<std::string> parts;
  for (const VarianceShare& each : uncertainty.shares) {
    if (each.share < share_worth_naming || parts.size() == most_shares) break;
    parts.push_back(fmt::format("{} {:.0f}%", each.source, 100 * each.share));
  }
  return joined(parts, ", ");
}

std::string uncertainty_line(const Run& run) {
  const Uncertainty& found = *run.metrics.uncertainty;
  const auto seconds = [](double value) { return seconds_text(value); };
  std::string text = fmt::format("{}: step time {} to {}", plan_at_point(run), seconds(found.step_time_s.p5),
                                 seconds(found.step_time_s.p95));
  if (found.speedup) text += fmt::format(", speed-up {:.2f} to {:.2f}x", found.speedup->p5, found.speedup->p95);
  const std::string variance = variance_text(found);
  if (!variance.empty()) text += fmt::format("; of the variance: {}", variance);
  if (!found.unknown.empty()) text += fmt::format("; taken as exact: {}", joined(found.unknown, ", "));
  if (!found.advice.empty()) text += fmt::format("; to narrow it: {}", found.advice);
  return text + "\n";
}

std::string uncertainty_lines(const std::vector<Run>& runs) {
  std::string text;
  for (const Run& run : runs) {
    if (!run.metrics.uncertainty) continue;
    if (text.empty()) text = fmt::format("p5 to p95 of {} samples:\n", run.metrics.uncertainty->samples);
    text += uncertainty_line(run);
  }
  return text;
}

// What has to be said of runs before the notes on their data.
std::string lines_of_runs(const std::vector<Run>& runs, const RunAdvice& advice) {
  return refusal_lines(runs, advice) + memory_lines(runs, advice) + risk_lines(runs) + baseline_lines(runs);
}

std::string footer(const std::vector<Run>& runs, const RunAdvice& advice) {
  std::set<std::string> profiles;
  for (const Run& run : runs) profiles.insert(run.info.profile);
  return lines_of_runs(runs, advice) + trace_lines(runs) + starved_lines(runs, advice) + goodput_lines(runs) +
         uncertainty_lines(runs) +
         fmt::format("costs: {}\nevidence for the step time: {}\n", joined(profiles, "; "), evidence_line(runs));
}

}  // namespace

std::vector<std::string> result_notes(const std::vector<Run>& runs, const RunAdvice& advice) {
  std::istringstream text(lines_of_runs(runs, advice) + starved_lines(runs, advice));
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

std::string largest_shares(const Breakdown& breakdown) {
  std::array<Activity, activity_count> order = all_activities;
  std::stable_sort(order.begin(), order.end(), [&](Activity a, Activity b) { return breakdown[a] > breakdown[b]; });

  const double total = breakdown.total().seconds();
  if (!(total > 0)) return {};
  double rest = 1;
  std::vector<std::string> parts;
  for (const Activity activity : order) {
    const double share = breakdown[activity].seconds() / total;
    if (parts.size() == most_shares || share < share_worth_naming) break;
    parts.push_back(fmt::format("{} {:.0f}%", activity_name(activity), 100 * share));
    rest -= share;
  }
  if (rest >= 0.005) parts.push_back(fmt::format("other {:.0f}%", 100 * rest));
  return joined(parts, ", ");
}

std::string result_table(std::string_view study_name, const std::vector<Run>& runs, const RunAdvice& advice) {
  if (runs.empty()) return {};
  const bool one_setting = same_for_all(runs, &RunInfo::setting);
  const SpeedupColumns speedups = speedups_of(runs);
  const std::vector<Column> columns = columns_of(speedups);
  const std::vector<const Run*> shown = with_baselines(runs);
  std::vector<Row> rows;
  rows.reserve(shown.size());
  for (const Run* run : shown) rows.push_back(row_of(*run, speedups));
  Row titles;
  std::vector<std::size_t> widths;
  titles.reserve(columns.size());
  widths.reserve(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    titles.push_back(columns[i].title);
    widths.push_back(widest(rows, columns[i], i));
  }

  std::string text =
      one_setting ? fmt::format("{}: {}\n", study_name, runs.front().info.setting) : fmt::format("{}\n", study_name);
  text += '\n';
  text += line(titles, columns, widths);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (i == 0 || shown[i]->info.point != shown[i - 1]->info.point) {
      const std::string title = point_title(shown[i]->info, !one_setting);
      if (!title.empty()) text += fmt::format("{}{}\n", i == 0 ? "" : "\n", title);
    }
    text += line(rows[i], columns, widths);
  }
  text += '\n';
  return text + footer(runs, advice);
}

}  // namespace hdpsim
