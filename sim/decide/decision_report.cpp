#include "sim/decide/decision_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/decide/decision_figures.h"
#include "sim/document/json.h"
#include "sim/document/values.h"
#include "sim/results/confidence_text.h"
#include "sim/results/csv.h"
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
  for (const Decision* row : rows) runs.push_back({row->run->info, {}, row->run->metrics});
  return runs;
}

std::string notes_of_decision(const std::vector<const Decision*>& rows, const DecisionResult& result) {
  const std::vector<Run> runs = runs_for_notes(rows);
  std::string text;
  for (const std::string& note : confidence_notes(runs)) text += note + "\n";
  const auto fails = [](const Run& run) { return run.metrics.goodput.has_value(); };
  if (std::none_of(runs.begin(), runs.end(), fails)) {
    text += "no time is lost to failures: the study has none (failures: {node_mtbf: 5 years, checkpoint: 60 s})\n";
  }
  if (result.prices.currency().empty())
    text += "no money: --prices FILE, or tune.price in the study, states what it costs\n";
  return text;
}

std::string table_of_points(const DecisionResult& result) {
  std::vector<const Decision*> rows;
  for (const Decision& decision : result.decisions) rows.push_back(&decision);
  const Shown shown = shown_of(rows, false);
  const std::string currency = result.prices.currency();
  const bool has_sweep = rows.back()->run->info.point > 0;
  std::vector<TextRow> cells = {titles_of_decision(shown, currency, has_sweep ? "over the first point" : "")};
  for (const Decision* row : rows) cells.push_back(decision_row(*row, shown, last_cell(*row, currency)));
  const std::vector<std::string> lines = aligned_lines(cells);
  std::string text = lines.front();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RunInfo& info = rows[i]->run->info;
    if (has_sweep && (i == 0 || info.point != rows[i - 1]->run->info.point)) {
      text += fmt::format("{}{}\n", i == 0 ? "" : "\n", point_text(info));
    }
    text += lines[i + 1];
  }
  return text + "\n" + notes_of_decision(rows, result);
}

std::string answer_of(const PlanSizes& plan) {
  if (!plan.surest) return "";
  if (plan.surest->gpus) return fmt::format("{} GPUs by the upper end of its interval", *plan.surest->gpus);
  return fmt::format("by the upper end of its interval none: {}", plan.surest->why);
}

// "simulated for static: 16 GPUs 58.6 days, 32 GPUs 30.1 days; refused: 24"
std::string tried_line(const PlanSizes& plan) {
  std::vector<std::string> sizes;
  for (const auto& [gpus, decision] : plan.simulated) {
    sizes.push_back(decision.training ? fmt::format("{} GPUs {} days", gpus, days_text(decision.training->days))
                                      : fmt::format("{} GPUs {}", gpus, obstacle(*decision.run)));
  }
  std::string text = fmt::format("simulated for {}: {}\n", plan.plan, joined(sizes, ", "));
  if (!plan.refused.empty()) {
    const auto& [gpus, why] = *plan.refused.begin();
    text +=
        fmt::format("  refused: {} GPUs{}: {}\n", gpus,
                    plan.refused.size() == 1 ? "" : fmt::format(" and {} more sizes", plan.refused.size() - 1), why);
  }
  return text;
}

std::string lead_of_search(const DecisionResult& result) {
  const PlanSizes* best = nullptr;
  for (const PlanSizes& plan : result.search) {
    if (plan.smallest.gpus && (best == nullptr || *plan.smallest.gpus < *best->smallest.gpus)) best = &plan;
  }
  const std::string aim = fmt::format("{} tokens in {} day{}", short_number(result.tokens), days_text(*result.days),
                                      *result.days == 1 ? "" : "s");
  if (best == nullptr) return fmt::format("No size trains {}.\n", aim);
  const Training& training = *best->simulated.at(*best->smallest.gpus).training;
  const auto& sure = training.sure_days;
  return fmt::format("The fewest GPUs for {} are {}, with {}: {} days{}.\n", aim, *best->smallest.gpus, best->plan,
                     days_text(training.days),
                     sure ? fmt::format(" (90%: {} to {})", days_text(sure->least), days_text(sure->most)) : "");
}

std::string table_of_search(const DecisionResult& result) {
  std::vector<const Decision*> answers;
  for (const PlanSizes& plan : result.search) {
    if (plan.smallest.gpus) answers.push_back(&plan.simulated.at(*plan.smallest.gpus));
  }
  std::string text = lead_of_search(result) + "\n";
  if (!answers.empty()) {
    const Shown shown = shown_of(answers, true);
    std::vector<TextRow> cells = {titles_of_decision(shown, result.prices.currency(), "to be sure")};
    for (const PlanSizes& plan : result.search) {
      if (!plan.smallest.gpus) continue;
      cells.push_back(decision_row(plan.simulated.at(*plan.smallest.gpus), shown, answer_of(plan)));
    }
    text += joined(aligned_lines(cells), "") + "\n";
  }
  for (const PlanSizes& plan : result.search) {
    if (!plan.smallest.gpus) text += fmt::format("{} cannot: {}\n", plan.plan, plan.smallest.why);
  }
  for (const PlanSizes& plan : result.search) text += tried_line(plan);
  text += "days are taken to fall with the size between those that were simulated\n";
  return text + (answers.empty() ? "" : notes_of_decision(answers, result));
}

std::vector<DecisionRow> rows_of(const DecisionResult& result) {
  std::vector<DecisionRow> rows;
  for (const Decision& decision : result.decisions) rows.push_back({&decision, nullptr});
  for (const PlanSizes& plan : result.search) {
    for (const auto& [gpus, decision] : plan.simulated) rows.push_back({&decision, &plan});
  }
  return rows;
}

Json answer_json(const SizeAnswer& answer) {
  return answer.gpus ? Json{{"gpus", *answer.gpus}} : Json{{"gpus", nullptr}, {"why", answer.why}};
}

Json search_json(const DecisionResult& result) {
  Json plans = Json::array();
  for (const PlanSizes& plan : result.search) {
    Json refused = Json::array();
    for (const auto& [gpus, why] : plan.refused) refused.push_back({{"gpus", gpus}, {"why", why}});
    plans.push_back({{"plan", plan.plan},
                     {"smallest", answer_json(plan.smallest)},
                     {"surest", plan.surest ? answer_json(*plan.surest) : Json()},
                     {"refused", refused}});
  }
  return {{"days", *result.days}, {"plans", plans}};
}

}  // namespace

std::string decision_table(const DecisionResult& result) {
  const std::string title = result.setting.empty() ? result.study : fmt::format("{}: {}", result.study, result.setting);
  if (result.days) return fmt::format("{}\n{}", title, table_of_search(result));
  return fmt::format("{}\n{} tokens\n\n{}", title, short_number(result.tokens), table_of_points(result));
}

std::string decision_csv(const DecisionResult& result) {
  const std::vector<DecisionRow> rows = rows_of(result);
  const FigureTable<DecisionRow>& figures = decision_row_figures();
  const std::vector<std::size_t> columns = figures.columns_of(rows);
  return csv_text([&](TableSink& sink) {
    write_key_names(rows.empty() ? RunInfo{} : rows.front().decision->run->info, sink);
    figures.write_names(columns, sink);
    sink.end_row();
    for (const DecisionRow& row : rows) {
      write_key(row.decision->run->info, sink);
      figures.write_cells(row, columns, sink);
      sink.end_row();
    }
  });
}

std::string decision_json(const DecisionResult& result, const Value& study, std::string_view version) {
  const std::string currency = result.prices.currency();
  return json_page({{"schema", "hdpsim.decision/1"},
                    {"hdpsim", version},
                    {"study", json_of(study)},
                    {"tokens", result.tokens},
                    {"currency", currency.empty() ? Json() : Json(currency)},
                    {"search", result.days ? search_json(result) : Json()},
                    {"rows", decision_row_figures().json_list(rows_of(result))}});
}

}  // namespace hdpsim
