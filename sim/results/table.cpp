#include "sim/results/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/results/confidence_text.h"
#include "sim/results/notes.h"

namespace hdpsim {
namespace {

constexpr double share_worth_naming = 0.02;
constexpr std::size_t most_shares = 4;

/// What a table has a column of, beside what all tables have.
struct Columns {
  bool speedup = false;           ///< Over the baseline.
  bool over_best = false;         ///< Over the best static mesh.
  bool step_interval = false;     ///< How sure the step is, ...
  bool speedup_interval = false;  ///< ... and the speed-up.
};

Columns columns_of(const std::vector<Run>& runs) {
  Columns columns;
  for (const Run& run : runs) {
    const RunMetrics& metrics = run.metrics;
    columns.speedup |= metrics.speedup.has_value();
    columns.over_best |= metrics.over_best_static.has_value();
    columns.step_interval |= metrics.confidence.has_value();
    columns.speedup_interval |= metrics.confidence && metrics.confidence->speedup;
  }
  return columns;
}

TextRow titles_of(const Columns& columns) {
  TextRow titles = {"plan", "step time"};
  if (columns.step_interval) titles.emplace_back("90%");
  titles.emplace_back("tokens/s");
  if (columns.speedup) titles.emplace_back("speed-up");
  if (columns.speedup_interval) titles.emplace_back("90%");
  if (columns.over_best) titles.emplace_back("over best");
  titles.insert(titles.end(), {"MFU", "where the time goes"});
  return titles;
}

TextRow refused_row(const Run& run, const Columns& columns) {
  const Refusal& refusal = *run.result.refusal;
  TextRow row(titles_of(columns).size(), "-");
  row.front() = run.info.plan;
  row.back() = fmt::format("refused: {} (step {})", refusal.message, refusal.step);
  return row;
}

// Figures of a plan that cannot run stand in brackets, and it has no speed-up.
TextRow row_of(const Run& run, const Columns& columns) {
  if (run.is_refused()) return refused_row(run, columns);
  const RunMetrics& metrics = run.metrics;
  const std::optional<Confidence>& sure = metrics.confidence;
  const auto figure = [&](const std::string& text) { return metrics.fits ? text : fmt::format("({})", text); };
  const auto times = [&](const Speedup* speedup) {
    return metrics.fits && speedup != nullptr ? fmt::format("{:.2f}x", speedup->mean) : "-";
  };
  TextRow row = {run.info.plan, figure(duration_text(metrics.breakdown.total()))};
  if (columns.step_interval) row.push_back(sure ? figure(seconds_range_text(sure->step_time_s)) : "-");
  row.push_back(figure(short_number(metrics.tokens_per_s)));
  if (columns.speedup) row.push_back(times(metrics.speedup ? &*metrics.speedup : nullptr));
  if (columns.speedup_interval) {
    row.push_back(metrics.fits && sure && sure->speedup ? speedup_range_text(*sure->speedup) : "-");
  }
  if (columns.over_best) {
    row.push_back(times(metrics.over_best_static ? &metrics.over_best_static->speedup : nullptr));
  }
  row.push_back(figure(fmt::format("{:.1f}%", 100 * metrics.mfu)));
  const std::string memory = memory_verdict_text(run);
  row.push_back(memory + (memory.empty() ? "" : "; ") + largest_shares(metrics.breakdown));
  return row;
}

std::string point_title(const RunInfo& info, bool with_setting) {
  const std::string point = point_text(info);
  if (!with_setting) return point;
  return point.empty() ? info.setting : fmt::format("{}, {}", point, info.setting);
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

// A line each point: its plans load alike, but for how long they wait.
std::string loader_lines(const std::vector<Run>& runs) {
  std::string text;
  std::optional<std::size_t> told;
  for (const Run& run : runs) {
    if (!run.metrics.loaders || told == run.info.point) continue;
    told = run.info.point;
    const LoaderMetrics& metrics = *run.metrics.loaders;
    const LoaderMemory& memory = metrics.most.memory;
    const std::string point = point_text(run.info);
    append(text, "{}{} {} with {} of host memory, {} on the fullest node", point.empty() ? "" : point + ": ",
           metrics.most.loaders, metrics.most.loaders == 1 ? "loader" : "loaders", bytes_text(memory.all),
           bytes_text(memory.node));
    if (memory.elsewhere > Bytes{}) append(text, ", {} on other hosts", bytes_text(memory.elsewhere));
    if (metrics.lost > 0) append(text, "; {} lost", metrics.lost);
    if (metrics.promoted > 0) append(text, "; {} replaced by shadows", metrics.promoted);
    text += '\n';
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
  if (!found.unknown.empty()) text += fmt::format("; without the errors of {}", joined(found.unknown, ", "));
  if (!found.advice.empty()) text += fmt::format("; to narrow it: {}", found.advice);
  return text + "\n";
}

std::string uncertainty_lines(const std::vector<Run>& runs) {
  std::string text;
  for (const Run& run : runs) {
    if (!run.metrics.uncertainty) continue;
    if (text.empty()) {
      text = fmt::format("what the known errors of costs and batches make of it, p5 to p95 of {} samples:\n",
                         run.metrics.uncertainty->samples);
    }
    text += uncertainty_line(run);
  }
  return text;
}

std::string footer(const std::vector<Run>& runs, const RunAdvice& advice) {
  std::set<std::string> profiles;
  for (const Run& run : runs) profiles.insert(run.info.profile);
  std::string how_sure;
  for (const std::string& note : confidence_notes(runs)) how_sure += note + "\n";
  return problem_lines(runs, advice) + trace_lines(runs) + starved_lines(runs, advice) + goodput_lines(runs) +
         loader_lines(runs) + how_sure + uncertainty_lines(runs) +
         fmt::format("costs: {}\nevidence for the step time: {}\n", joined(profiles, "; "), evidence_line(runs));
}

}  // namespace

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

std::vector<std::string> aligned_lines(const std::vector<TextRow>& rows, FirstColumn first) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const TextRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> lines;
  for (const TextRow& row : rows) {
    std::string& line = lines.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_text = i + 1 == row.size() || (i == 0 && first == FirstColumn::text);
      line += is_text ? fmt::format("  {:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    line += '\n';
  }
  return lines;
}

std::string result_table(std::string_view study_name, const std::vector<Run>& runs, const RunAdvice& advice) {
  if (runs.empty()) return {};
  const bool one_setting = same_for_all(runs, &RunInfo::setting);
  const Columns columns = columns_of(runs);
  const std::vector<const Run*> shown = with_baselines(runs);
  std::vector<TextRow> rows = {titles_of(columns)};
  for (const Run* run : shown) rows.push_back(row_of(*run, columns));
  const std::vector<std::string> lines = aligned_lines(rows);

  std::string text =
      one_setting ? fmt::format("{}: {}\n", study_name, runs.front().info.setting) : fmt::format("{}\n", study_name);
  text += '\n' + lines.front();
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (i == 0 || shown[i]->info.point != shown[i - 1]->info.point) {
      const std::string title = point_title(shown[i]->info, !one_setting);
      if (!title.empty()) text += fmt::format("{}{}\n", i == 0 ? "" : "\n", title);
    }
    text += lines[i + 1];
  }
  return text + '\n' + footer(runs, advice);
}

}  // namespace hdpsim
