#include "sim/decide/decision_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/report/page/table_page.h"
#include "sim/results/confidence_text.h"
#include "sim/results/notes.h"
#include "sim/results/result_notes.h"
#include "sim/results/table.h"

namespace hdpsim {
namespace {

/// What a table has a column of, beside what all tables have.
struct Shown {
  bool gpus = false;
  bool interval = false;
  bool goodput = false;
  bool energy = false;
  bool cost = false;
};

Shown shown_of(const std::vector<const Decision*>& rows, bool is_search) {
  Shown shown;
  for (const Decision* row : rows) {
    shown.gpus |= is_search || row->run->info.gpus != rows.front()->run->info.gpus;
    if (!row->training) continue;
    shown.interval |= row->training->sure_days.has_value();
    shown.goodput |= row->run->metrics.goodput.has_value();
    shown.energy |= row->training->energy_mwh.has_value();
    shown.cost |= row->training->cost.has_value();
  }
  return shown;
}

TextRow titles_of_decision(const Shown& shown, const std::string& currency, const std::string& last) {
  TextRow row = {"plan"};
  if (shown.gpus) row.emplace_back("GPUs");
  row.emplace_back("days");
  if (shown.interval) row.emplace_back("90%");
  if (shown.goodput) row.emplace_back("goodput");
  row.insert(row.end(), {"GPU-hours", "tokens/month"});
  if (shown.energy) row.emplace_back("MWh");
  if (shown.cost) row.push_back(currency);
  row.push_back(last);
  return row;
}

std::string number_or_dash(const std::optional<double>& number) {
  return number ? short_number(*number) : "-";
}

TextRow decision_row(const Decision& decision, const Shown& shown, const std::string& last) {
  TextRow row = {decision.run->info.plan};
  if (shown.gpus) row.push_back(fmt::format("{}", decision.run->info.gpus));
  if (!decision.training) {
    row.resize(titles_of_decision(shown, "", "").size(), "-");
    row.back() = last;
    return row;
  }
  const Training& training = *decision.training;
  row.push_back(days_text(training.days));
  if (shown.interval) {
    const auto& sure = training.sure_days;
    row.push_back(sure ? fmt::format("{}-{}", days_text(sure->least), days_text(sure->most)) : "-");
  }
  if (shown.goodput) row.push_back(fmt::format("{:.1f}%", 100 * training.goodput));
  row.push_back(short_number(training.gpu_hours));
  row.push_back(short_number(training.tokens_per_month));
  if (shown.energy) row.push_back(number_or_dash(training.energy_mwh));
  if (shown.cost) row.push_back(number_or_dash(training.cost));
  row.push_back(last);
  return row;
}

// Why a run trains nothing.
std::string obstacle(const Run& run) {
  if (run.is_refused()) return fmt::format("refused: {}", run.result.refusal->message);
  return run.metrics.fits ? "failures leave no time to train" : fmt::format("does not fit: {}", memory_excess(run));
}

std::string signed_percents(double ratio) {
  return fmt::format("{:+.1f}%", 100 * (ratio - 1));
}

// "+115.0%", and where GPU-hours or money go another way, those too; then what memory says.
std::string last_cell(const Decision& decision, const std::string& currency) {
  if (!decision.training) return obstacle(*decision.run);
  std::vector<std::string> parts;
  if (const auto& over = decision.over_first) {
    const std::string days = signed_percents(over->days);
    parts.push_back(days);
    const std::string hours = signed_percents(over->gpu_hours);
    if (hours != days) parts.push_back(fmt::format("GPU-hours {}", hours));
    if (over->cost && signed_percents(*over->cost) != hours) {
      parts.push_back(fmt::format("{} {}", currency, signed_percents(*over->cost)));
    }
  }
  if (const std::string memory = memory_verdict_text(*decision.run); !memory.empty()) parts.push_back(memory);
  return joined(parts, ", ");
}

// Without what their steps are.
std::vector<Run> runs_for_notes(const std::vector<const Decision*>& rows) {
  std::vector<Run> runs;
  runs.reserve(rows.size());
  for (const Decision* row : rows) runs.push_back({row->run->info, {}, row->run->metrics});
  return runs;
}

std::vector<std::string> notes_of_decision(const std::vector<const Decision*>& rows, const DecisionResult& result) {
  const std::vector<Run> runs = runs_for_notes(rows);
  std::vector<std::string> notes = confidence_notes(runs);
  const auto fails = [](const Run& run) { return run.metrics.goodput.has_value(); };
  if (std::none_of(runs.begin(), runs.end(), fails)) {
    notes.emplace_back(
        "no time is lost to failures: the study has none (failures: {node_mtbf: 5 years, checkpoint: 60 s})");
  }
  if (result.prices.currency().empty()) {
    notes.emplace_back("no money: --prices FILE, or tune.price in the study, states what it costs");
  }
  return notes;
}

ShownTable table_of_points(const DecisionResult& result) {
  std::vector<const Decision*> rows;
  for (const Decision& decision : result.decisions) rows.push_back(&decision);
  const Shown shown = shown_of(rows, false);
  const std::string currency = result.prices.currency();
  const bool has_sweep = rows.back()->run->info.point > 0;
  ShownTable table{"What it takes", titles_of_decision(shown, currency, has_sweep ? "over the first point" : ""), {}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RunInfo& info = rows[i]->run->info;
    if (i == 0 || info.point != rows[i - 1]->run->info.point) {
      table.groups.push_back({has_sweep ? point_text(info) : "", {}});
    }
    table.groups.back().rows.push_back(decision_row(*rows[i], shown, last_cell(*rows[i], currency)));
  }
  return table;
}

// The run that takes the least money, or without prices the fewest GPU-hours.
std::string lead_of_points(const DecisionResult& result) {
  const auto price = [](const Decision& decision) {
    return decision.training->cost.value_or(decision.training->gpu_hours);
  };
  const Decision* best = nullptr;
  for (const Decision& decision : result.decisions) {
    if (decision.training && (best == nullptr || price(decision) < price(*best))) best = &decision;
  }
  const std::string aim = fmt::format("{} tokens", short_number(result.tokens));
  if (best == nullptr) return fmt::format("No run trains {}.", aim);
  const Training& training = *best->training;
  return fmt::format(
      "{} are cheapest with {}: {} days, {} GPU-hours{}.", aim, plan_at_point(*best->run), days_text(training.days),
      short_number(training.gpu_hours),
      training.cost ? fmt::format(", {} {}", short_number(*training.cost), result.prices.currency()) : "");
}

std::string answer_of(const PlanSizes& plan) {
  if (!plan.surest) return "";
  if (plan.surest->gpus) return fmt::format("{} GPUs by the upper end of its interval", *plan.surest->gpus);
  return fmt::format("by the upper end of its interval none: {}", plan.surest->why);
}

// "simulated for static: 16 GPUs 58.6 days, 32 GPUs 30.1 days"
std::string tried_line(const PlanSizes& plan) {
  std::vector<std::string> sizes;
  for (const auto& [gpus, decision] : plan.simulated) {
    sizes.push_back(decision.training ? fmt::format("{} GPUs {} days", gpus, days_text(decision.training->days))
                                      : fmt::format("{} GPUs {}", gpus, obstacle(*decision.run)));
  }
  return fmt::format("simulated for {}: {}\n", plan.plan, joined(sizes, ", "));
}

// A size with which the plan takes longer than with the next smaller one that was simulated: a smaller size than the
// answer may be in time, too.
std::string unevenness(const PlanSizes& plan) {
  constexpr double visible = 1.01;
  if (!plan.smallest.gpus) return "";
  const auto& sizes = plan.simulated;
  const auto end = sizes.upper_bound(*plan.smallest.gpus);
  const auto is_worse = [&](const auto& small, const auto& large) {
    const auto& [less, more] = std::pair(small.second.training, large.second.training);
    return less && more && more->days > visible * less->days;
  };
  const auto found = std::adjacent_find(sizes.begin(), end, is_worse);
  if (found == end) return "";
  return fmt::format(
      "{} takes longer with {} GPUs than with {}: of sizes that were not simulated, a smaller one may be "
      "in time, too",
      plan.plan, std::next(found)->first, found->first);
}

std::vector<std::string> notes_of_search(const DecisionResult& result) {
  std::vector<std::string> notes;
  for (const PlanSizes& plan : result.search) {
    if (!plan.smallest.gpus) notes.push_back(fmt::format("{} cannot: {}", plan.plan, plan.smallest.why));
  }
  for (const PlanSizes& plan : result.search) {
    if (!plan.refused.empty()) {
      const auto& [gpus, why] = *plan.refused.begin();
      const std::size_t more = plan.refused.size() - 1;
      notes.push_back(fmt::format("refused for {}: {} GPUs{}: {}", plan.plan, gpus,
                                  more == 0 ? "" : fmt::format(" and {} more sizes", more), why));
    }
    if (const std::string uneven = unevenness(plan); !uneven.empty()) notes.push_back(uneven);
  }
  return notes;
}

// Of plans with which as few GPUs are enough, the one that is done first.
const PlanSizes* smallest_of(const std::vector<PlanSizes>& search) {
  const auto what_it_takes = [](const PlanSizes& plan) {
    return std::pair(*plan.smallest.gpus, plan.simulated.at(*plan.smallest.gpus).training->days);
  };
  const PlanSizes* best = nullptr;
  for (const PlanSizes& plan : search) {
    if (plan.smallest.gpus && (best == nullptr || what_it_takes(plan) < what_it_takes(*best))) best = &plan;
  }
  return best;
}

std::string lead_of_search(const DecisionResult& result) {
  const PlanSizes* best = smallest_of(result.search);
  const std::string aim = fmt::format("{} tokens in {} day{}", short_number(result.tokens), days_text(*result.days),
                                      *result.days == 1 ? "" : "s");
  if (best == nullptr) return fmt::format("No size trains {}.", aim);
  const Training& training = *best->simulated.at(*best->smallest.gpus).training;
  const auto& sure = training.sure_days;
  return fmt::format("The fewest GPUs for {} are {}, with {}: {} days{}.", aim, *best->smallest.gpus, best->plan,
                     days_text(training.days),
                     sure ? fmt::format(" (90%: {} to {})", days_text(sure->least), days_text(sure->most)) : "");
}

std::vector<const Decision*> answers_of(const DecisionResult& result) {
  std::vector<const Decision*> answers;
  for (const PlanSizes& plan : result.search) {
    if (plan.smallest.gpus) answers.push_back(&plan.simulated.at(*plan.smallest.gpus));
  }
  return answers;
}

ShownTable table_of_answers(const DecisionResult& result) {
  const Shown shown = shown_of(answers_of(result), true);
  ShownTable table{
      "The smallest size of each plan", titles_of_decision(shown, result.prices.currency(), "to be sure"), {{}}};
  for (const PlanSizes& plan : result.search) {
    if (!plan.smallest.gpus) continue;
    table.groups[0].rows.push_back(decision_row(plan.simulated.at(*plan.smallest.gpus), shown, answer_of(plan)));
  }
  return table;
}

ShownCurves curves_of(const DecisionResult& result) {
  ShownCurves curves{"Days by GPUs", "A dot is a size that was simulated.",          "GPUs", "days",
                     *result.days,   fmt::format("{} days", days_text(*result.days))};
  for (const PlanSizes& plan : result.search) {
    auto& [name, points] = curves.series.emplace_back(plan.plan, std::vector<std::pair<double, double>>{});
    for (const auto& [gpus, decision] : plan.simulated) {
      if (decision.training) points.emplace_back(gpus, decision.training->days);
    }
    if (points.empty()) curves.series.pop_back();
  }
  return curves;
}

/// What a table and a page say.
TablePage page_of(const DecisionResult& result) {
  TablePage page;
  page.title = result.setting.empty() ? result.study : fmt::format("{}: {}", result.study, result.setting);
  std::vector<const Decision*> rows = answers_of(result);
  if (result.days) {
    page.lead = lead_of_search(result);
    page.notes = notes_of_search(result);
    page.curves = curves_of(result);
    if (page.curves->series.empty()) page.curves.reset();
    if (!rows.empty()) page.tables = {table_of_answers(result)};
    for (const PlanSizes& plan : result.search) page.plans.push_back(plan.plan);
  } else {
    page.lead = lead_of_points(result);
    page.tables = {table_of_points(result)};
    for (const Decision& decision : result.decisions) {
      rows.push_back(&decision);
      if (decision.run->info.point == 0) page.plans.push_back(decision.run->info.plan);
    }
  }
  if (rows.empty()) return page;
  const std::vector<std::string> notes = notes_of_decision(rows, result);
  page.notes.insert(page.notes.end(), notes.begin(), notes.end());
  return page;
}

}  // namespace

std::string decision_table(const DecisionResult& result) {
  const TablePage page = page_of(result);
  std::string text = fmt::format("{}\n{}\n", page.title, page.lead);
  for (const ShownTable& table : page.tables) text += fmt::format("\n{}", table_text(table));
  text += "\n";
  for (const PlanSizes& plan : result.search) text += tried_line(plan);
  return text + joined(page.notes, "\n") + "\n";
}

std::string decision_page(const DecisionResult& result) {
  return table_page(page_of(result));
}

}  // namespace hdpsim
