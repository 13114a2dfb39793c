#include <nlohmann/json.hpp>

#include "sim/decide/decision_figures.h"
#include "sim/decide/decision_report.h"
#include "sim/document/json.h"
#include "sim/document/values.h"
#include "sim/results/csv.h"

namespace hdpsim {
namespace {

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

DecisionResult asked_decision(const Study& study, double tokens, std::optional<double> days,
                              const std::string& price_file) {
  DecisionResult result;
  result.study = study.name;
  result.tokens = tokens;
  result.days = days;
  result.prices.tuned = study.tune.price;
  if (!price_file.empty()) result.prices.file = load_prices(price_file);
  for (const StudyPoint& point : study.points) (void)result.prices.rates(point.spec.cluster);
  if (study.points.size() == 1 || days) result.setting = study.run_info(0, 0).setting;
  return result;
}

void write_decisions(const DecisionResult& result, TableSink& sink) {
  const std::vector<DecisionRow> rows = rows_of(result);
  const FigureTable<DecisionRow>& figures = decision_row_figures();
  const std::vector<std::size_t> columns = figures.columns_of(rows);
  write_key_names(rows.empty() ? RunInfo{} : rows.front().decision->run->info, sink);
  figures.write_names(columns, sink);
  sink.end_row();
  for (const DecisionRow& row : rows) {
    write_key(row.decision->run->info, sink);
    figures.write_cells(row, columns, sink);
    sink.end_row();
  }
}

std::string decision_csv(const DecisionResult& result) {
  return csv_text([&](TableSink& sink) { write_decisions(result, sink); });
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
