#include "sim/replay/replay_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "sim/base/growing_file.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/json.h"
#include "sim/document/values.h"
#include "sim/replay/replay_text.h"
#include "sim/replay/window_table.h"
#include "sim/results/run_figures.h"
#include "sim/results/table.h"

namespace hdpsim {
namespace {

std::string shares_text(const PlanSummary& plan) {
  Breakdown breakdown;
  for (const Activity activity : all_activities) {
    breakdown[activity] = Duration::seconds(plan.breakdown_s[index_of(activity)]);
  }
  return largest_shares(breakdown);
}

TextRow row_of(const ReplayResult& result, std::size_t index) {
  const PlanSummary& plan = result.summary.plans[index];
  const std::string unfit = unfit_text(result, index);
  const std::string risk = risk_text(result, index);
  const std::optional<double> over_best = over_best_static(result, index);
  const auto time = [&](double p) { return seconds_text(plan.time_s.quantile(p)); };
  return {
      result.plans[index],
      plan.does_not_fit == 0 ? seconds_text(plan.mean_s) : fmt::format("({})", seconds_text(plan.mean_s)),
      time(0.05),
      time(0.5),
      time(0.95),
      time(1),
      plan.does_not_fit == 0 ? fmt::format("{:.2f}x ({:.2f}-{:.2f})", plan.speedup, plan.speedups.quantile(0.05),
                                           plan.speedups.quantile(0.95))
                             : "-",
      over_best && plan.does_not_fit == 0 ? fmt::format("{:.2f}x", *over_best) : "-",
      fmt::format("{:.1f}%", 100 * static_cast<double>(plan.fastest) / static_cast<double>(result.summary.rules.steps)),
      (unfit.empty() ? "" : unfit + "; ") + (risk.empty() ? "" : risk + "; ") + shares_text(plan)};
}

constexpr std::ptrdiff_t over_best_column = 7;

std::string plans_table(const ReplayResult& result) {
  std::vector<TextRow> rows = {{"plan", "mean", "p5", "p50", "p95", "slowest", "speed-up (p5-p95)", "over best",
                                "fastest in", "where the time goes"}};
  for (std::size_t plan = 0; plan < result.plans.size(); ++plan) rows.push_back(row_of(result, plan));
  if (!result.best_static) {
    for (TextRow& row : rows) row.erase(row.begin() + over_best_column);
  }
  return joined(aligned_lines(rows), "");
}

// Wraps a sentence to the width of a terminal, its first line indented by two, the others by four.
std::string wrapped(std::string_view sentence) {
  constexpr std::size_t width = 118;
  std::string text;
  std::string line = " ";
  for (std::size_t at = 0; at < sentence.size();) {
    const std::size_t blank = std::min(sentence.find(' ', at), sentence.size());
    const std::string_view word = sentence.substr(at, blank - at);
    if (line.size() + 1 + word.size() > width) {
      text += line + "\n";
      line = "   ";
    }
    line += fmt::format(" {}", word);
    at = blank + 1;
  }
  return text + line + "\n";
}

std::string leads(const ReplayResult& result) {
  std::string text;
  for (std::size_t plan = 0; plan < result.plans.size(); ++plan) {
    if (plan == result.summary.rules.baseline) continue;
    text += lead_sentence(result, plan) + "\n";
    for (const Stretch& stretch : result.summary.plans[plan].lowest) {
      text += wrapped(stretch_sentence(result, stretch));
    }
  }
  return text;
}

std::string worst_steps(const ReplayResult& result) {
  std::string text;
  for (std::size_t plan = 0; plan < result.plans.size(); ++plan) {
    if (result.worst[plan].empty()) continue;
    text += fmt::format("\nThe slowest steps of {}:\n", result.plans[plan]);
    for (const StepCause& cause : result.worst[plan]) text += wrapped(step_sentence(result, cause));
  }
  return text;
}

Json quantiles_json(const QuantileSketch& sketch) {
  return {{"min", sketch.quantile(0)},    {"p5", sketch.quantile(0.05)},  {"p50", sketch.quantile(0.5)},
          {"p95", sketch.quantile(0.95)}, {"p99", sketch.quantile(0.99)}, {"max", sketch.quantile(1)}};
}

Json breakdown_json(const std::array<double, activity_count>& seconds) {
  Json json = Json::object();
  for (const Activity activity : all_activities) {
    json[std::string(activity_name(activity))] = seconds[index_of(activity)];
  }
  return json;
}

Json window_json(const WindowRow& row) {
  return window_figures().json({&row, nullptr});
}

Json cause_json(const ReplayResult& result, const StepCause& cause) {
  Json sequences = Json::array();
  for (const SequenceShare& share : cause.sequences) {
    sequences.push_back({{"sequence", share.sequence},
                         {"document", share.document},
                         {"reading", share.reading},
                         {"tokens", share.tokens},
                         {"share_of_tokens", share.of_tokens},
                         {"share_of_attention", share.of_attention},
                         {"share_of_critical_path", share.of_chain},
                         {"group", share.group}});
  }
  const StepRow& row = cause.row;
  return {{"step", row.step},
          {"step_time_s", row.time_s},
          {"breakdown_s", breakdown_json(row.breakdown_s)},
          {"busy_mean_s", row.busy_mean_s},
          {"busy_max_s", row.busy_max_s},
          {"critical_path", {{"micro_batches", cause.chain}, {"sequences", cause.chain_sequences}}},
          {"groups", {{"least", cause.least_group}, {"most", cause.most_group}}},
          {"sequences", sequences},
          {"text", step_sentence(result, cause)}};
}

Json over_best_json(const ReplayResult& result, std::size_t index) {
  if (!result.best_static) return nullptr;
  const BestStaticShare& best = *result.best_static;
  return {{"sharing", best.sharing},
          {"cut", best.cut},
          {"cp", best.cp},
          {"mean", *over_best_static(result, index)},
          {"steps", best.steps}};
}

}  // namespace

Json plan_json(const ReplayResult& result, std::size_t index) {
  const PlanSummary& plan = result.summary.plans[index];
  Json stretches = Json::array();
  for (const Stretch& stretch : plan.lowest) {
    stretches.push_back({{"all", window_json(stretch.all)}, {"lowest", window_json(stretch.lowest)}});
  }
  Json worst = Json::array();
  for (const StepCause& cause : result.worst[index]) worst.push_back(cause_json(result, cause));
  Json times = quantiles_json(plan.time_s);
  times["mean"] = plan.mean_s;
  Json speedups = quantiles_json(plan.speedups);
  speedups["mean"] = plan.speedup;
  return {{"plan", result.plans[index]},
          {"step_time_s", times},
          {"speedup", speedups},
          {"speedup_over_best_static", over_best_json(result, index)},
          {"breakdown_s", breakdown_json(plan.breakdown_s)},
          {"fastest_steps", plan.fastest},
          {"memory_gb",
           {{"device_peak", plan.device_gb}, {"host_peak", plan.host_gb}, {"device_at_most", plan.device_at_most_gb}}},
          {"steps_that_do_not_fit", plan.does_not_fit},
          {"steps_at_risk", plan.at_risk},
          {"lead_lost", {{"stretches", plan.stretches}, {"steps", plan.steps_in_them}, {"lowest", stretches}}},
          {"worst", worst}};
}

std::string replay_table(const ReplayResult& result) {
  std::string refused;
  for (const RefusedPlan& each : result.refused) refused += refusal_text(each) + '\n';
  const std::string best_static = best_static_sentence(result);
  return fmt::format("{}: {}\n\n{}{}\n{}{}\n\nLengths:\n{}\n{}{}\ncosts: {}\n", result.study, result.setting,
                     plans_table(result), refused, best_static.empty() ? "" : best_static + "\n", best_sentence(result),
                     wrapped(lengths_sentence(result)), leads(result), worst_steps(result), result.profile);
}

std::string replay_json(const ReplayResult& result, const Value& study, std::string_view version) {
  const ReplaySummary& summary = result.summary;
  const ReplayRules& rules = summary.rules;
  Json json = {{"schema", "hdpsim.replay/1"},
               {"hdpsim", version},
               {"study", json_of(study)},
               {"steps", rules.steps},
               {"window", rules.window},
               {"threshold", rules.threshold},
               {"baseline", baseline_of(result)},
               {"fastest_plan_each_step_s", summary.best_mean_s},
               {"lengths",
                {{"sequences", summary.lengths.sequences},
                 {"tokens", summary.lengths.tokens},
                 {"longest", summary.lengths.longest},
                 {"weighted_length", summary.lengths.weighted_length},
                 {"shortest_window", window_json(summary.shortest)},
                 {"longest_window", window_json(summary.longest)}}},
               {"trace", result.trace ? trace_figures().json(*result.trace) : Json()},
               {"plans", Json::array()},
               {"refused", Json::array()}};
  for (std::size_t plan = 0; plan < result.plans.size(); ++plan) json["plans"].push_back(plan_json(result, plan));
  for (const RefusedPlan& refused : result.refused) {
    json["refused"].push_back({{"plan", refused.plan},
                               {"step", refused.refusal.step},
                               {"message", refused.refusal.message},
                               {"help", refused.refusal.help}});
  }
  return json_page(json);
}

void write_replay(OutputFolder& folder, const ReplayResult& result, const Study& study, std::string_view version) {
  folder.write("study.yaml", to_yaml(study.resolved));
  folder.write("replay.html", replay_page(result));
  folder.write("replay.json", replay_json(result, study.resolved, version));
}

std::vector<std::string> replay_file_names() {
  return {"study.yaml", "replay.html", "replay.json", "steps.csv", "windows.csv"};
}

std::vector<std::string> replay_growing_names() {
  return growing_names({"steps.csv", "windows.csv"});
}

}  // namespace hdpsim
