#include "sim/results/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "sim/analysis/memory_verdict.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/values.h"
#include "sim/plan/plan_check.h"
#include "sim/results/baseline_note.h"
#include "sim/results/risk_note.h"
#include "sim/results/trace_notes.h"

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

Row refused_row(const Run& run, bool with_speedup) {
  const Refusal& refusal = *run.result.refusal;
  Row row = {run.info.plan, "-", "-", "-", fmt::format("refused: {} (step {})", refusal.message, refusal.step)};
  if (with_speedup) row.insert(row.begin() + 3, "-");
  return row;
}

// Figures of a plan that cannot run stand in brackets, and it has no speed-up.
Row row_of(const Run& run, bool with_speedup) {
  if (run.is_refused()) return refused_row(run, with_speedup);
  const RunMetrics& metrics = run.metrics;
  const auto figure = [&](const std::string& text) { return metrics.fits ? text : fmt::format("({})", text); };
  Row row = {run.info.plan, figure(duration_text(metrics.breakdown.total())),
             figure(short_number(metrics.tokens_per_s))};
  if (with_speedup) {
    row.push_back(metrics.fits && metrics.speedup ? fmt::format("{:.2f}x", metrics.speedup->mean) : "-");
  }
  row.push_back(figure(fmt::format("{:.1f}%", 100 * metrics.mfu)));
  const std::string excess = metrics.fits ? "" : fmt::format("does not fit: {}; ", memory_excess(run));
  const std::string risk = fit_of(run) == MemoryFit::at_risk ? "memory at risk; " : "";
  row.push_back(excess + risk + largest_shares(metrics.breakdown));
  return row;
}

std::vector<Column> columns_of(bool with_speedup) {
  std::vector<Column> columns = {{"plan", true}, {"step time"}, {"tokens/s"}};
  if (with_speedup) columns.push_back({"speed-up"});
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

// A tuned baseline stands below the plans of its point.
std::vector<const Run*> with_tuned_baselines(const std::vector<Run>& runs) {
  std::vector<const Run*> shown;
  const Run* baseline = nullptr;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    shown.push_back(&runs[i]);
    if (runs[i].tuned_baseline) baseline = runs[i].tuned_baseline.get();
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

std::string memory_advice(const Run& run) {
  if (exceeds_capacity(run)) return capacity_advice;
  const MemoryUse& memory = run.metrics.memory;
  if (memory.device <= run.info.device_memory) return "offload less, or use a smaller mesh.capacity";
  const MemoryParts& parts = memory.parts;
  const Bytes states = parts[MemoryPart::parameters] + parts[MemoryPart::gradients] + parts[MemoryPart::optimizer];
  const Bytes tokens = parts[MemoryPart::activations] + parts[MemoryPart::head];
  if (states > run.info.device_memory) return "use a larger mesh.tp, or mesh.zero: 3";
  if (tokens > states) return "use a smaller mesh.capacity, recompute activations, or offload them";
  return "use a larger mesh.tp or a smaller mesh.capacity";
}

std::string plan_at_point(const Run& run) {
  const std::string point = point_title(run.info, false);
  return point.empty() ? run.info.plan : fmt::format("{} at {}", run.info.plan, point);
}

/// Runs of one plan that do not fit, for the same reason.
struct Misfits {
  std::string plan;
  std::string advice;
  std::size_t count = 0;
  const Run* fullest = nullptr;
};

std::vector<Misfits> misfits_of(const std::vector<Run>& runs) {
  std::vector<Misfits> found;
  for (const Run& run : runs) {
    if (run.metrics.fits) continue;
    const std::string advice = memory_advice(run);
    auto same = std::find_if(found.begin(), found.end(),
                             [&](const Misfits& each) { return each.plan == run.info.plan && each.advice == advice; });
    if (same == found.end()) same = found.insert(found.end(), {run.info.plan, advice, 0, &run});
    ++same->count;
    const auto fullness = [](const Run& each) {
      return std::tuple(each.metrics.tokens_held, each.metrics.memory.device, each.metrics.memory.host);
    };
    if (fullness(run) > fullness(*same->fullest)) same->fullest = &run;
  }
  return found;
}

std::size_t runs_of(const std::vector<Run>& runs, const std::string& plan) {
  const auto is_of_plan = [&](const Run& run) { return run.info.plan == plan; };
  return static_cast<std::size_t>(std::count_if(runs.begin(), runs.end(), is_of_plan));
}

// Runs that do not fit, a line per plan and reason: how many, what fills the fullest device, and what would help.
std::string memory_lines(const std::vector<Run>& runs) {
  std::string text;
  for (const Misfits& misfits : misfits_of(runs)) {
    const Run& fullest = *misfits.fullest;
    const std::string parts = exceeds_capacity(fullest) ? "" : largest_parts(fullest.metrics.memory.parts);
    const std::string of_which = parts.empty() ? "" : fmt::format(", of it {}", parts);
    const std::size_t all = runs_of(runs, misfits.plan);
    const std::string savings = exceeds_capacity(fullest) ? "" : not_modelled_savings(fullest);
    const std::string perhaps = savings.empty() ? "" : "; " + savings;
    if (all == 1) {
      text += fmt::format("{} does not fit: {}{}; {}{}\n", plan_at_point(fullest), memory_excess(fullest), of_which,
                          misfits.advice, perhaps);
    } else {
      text += fmt::format("{} does not fit at {} of {} points: up to {}{}; {}{}\n", misfits.plan, misfits.count, all,
                          memory_excess(fullest), of_which, misfits.advice, perhaps);
    }
  }
  return text;
}

// Runs that were refused, a line per plan: where it is named, what its policy says of the first of them, and what it
// suggests.
std::string refusal_lines(const std::vector<Run>& runs) {
  std::string text;
  std::set<std::string> told;
  for (const Run& run : runs) {
    const std::string& plan = run.info.plan;
    if (!run.is_refused() || !told.insert(plan).second) continue;
    const std::size_t all = runs_of(runs, plan);
    const auto count = std::count_if(runs.begin(), runs.end(),
                                     [&](const Run& other) { return other.is_refused() && other.info.plan == plan; });
    const std::string where = all == 1 ? "" : fmt::format(" at {} of {} points", count, all);
    const std::string& help = run.result.refusal->help;
    text += fmt::format("{} is refused{}: {}{}\n", plan, where, refusal_text(run), help.empty() ? "" : "; " + help);
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

// One line for all runs whose ranks wait for each other because they have too few micro-batches to balance.
std::string starved_line(const std::vector<Run>& runs) {
  std::set<std::string> plans;
  double fewest = few_micro_batches;
  for (const Run& run : runs) {
    if (!is_starved(run)) continue;
    plans.insert(run.info.plan);
    fewest = std::min(fewest, micro_batches_a_rank(run));
  }
  if (plans.empty()) return "";
  return fmt::format(
      "{}: group_wait is more than {:.0f}% where a step has as little as {:.2g} micro-batches for each rank, too few "
      "to "
      "balance; more data.tokens_per_step or a smaller mesh.capacity gives more\n",
      joined(plans, ", "), 100 * much_waiting, fewest);
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

std::string footer(const std::vector<Run>& runs) {
  std::set<std::string> profiles;
  for (const Run& run : runs) profiles.insert(run.info.profile);
  return refusal_lines(runs) + memory_lines(runs) + risk_lines(runs) + baseline_lines(runs) + trace_lines(runs) +
         starved_line(runs) + goodput_lines(runs) + uncertainty_lines(runs) +
         fmt::format("costs: {}\nthe time rests on: {}\n", joined(profiles, "; "), evidence_line(runs));
}

}  // namespace

std::vector<std::string> result_notes(const std::vector<Run>& runs) {
  std::istringstream text(refusal_lines(runs) + memory_lines(runs) + risk_lines(runs) + baseline_lines(runs) +
                          starved_line(runs));
  std::vector<std::string> notes;
  for (std::string line; std::getline(text, line);) notes.push_back(line);
  return notes;
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

std::string result_table(std::string_view study_name, const std::vector<Run>& runs) {
  if (runs.empty()) return {};
  const bool one_setting = same_for_all(runs, &RunInfo::setting);
  const bool with_speedup =
      std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.metrics.speedup.has_value(); });
  const std::vector<Column> columns = columns_of(with_speedup);
  const std::vector<const Run*> shown = with_tuned_baselines(runs);
  std::vector<Row> rows;
  rows.reserve(shown.size());
  for (const Run* run : shown) rows.push_back(row_of(*run, with_speedup));
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
  return text + footer(runs);
}

}  // namespace hdpsim
