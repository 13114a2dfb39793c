#include "sim/compare/comparison_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/analysis/kendall_tau.h"
#include "sim/base/quantity_text.h"
#include "sim/compare/comparison_figures.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

constexpr std::size_t worst_families = 10;
constexpr std::size_t ranks_of_table = 16;

std::string time_text(double seconds) {
  return seconds == 0 ? "-" : seconds_text(seconds);
}

std::string percent_text(const std::optional<double>& share) {
  return share ? fmt::format("{:+.1f}%", 100 * *share) : "-";
}

std::string noise_text(const Comparison& plan) {
  if (!plan.noise_floor_s || !(plan.step_time_s.measured > 0)) return "unknown";
  return fmt::format("{:.1f}%", 100 * *plan.noise_floor_s / plan.step_time_s.measured);
}

std::string share_text(double part, double whole) {
  return whole > 0 ? fmt::format("{:.0f}%", 100 * part / whole) : "-";
}

std::size_t widest_name(const std::vector<Comparison>& plans) {
  std::size_t width = 4;
  for (const Comparison& plan : plans) width = std::max(width, plan.plan.size());
  return width;
}

// Empty if kernels were not timed during the runs.
std::string pace_line(const Comparison& plan) {
  if (!plan.at_pace_s) return "";
  return fmt::format("  {} at the pace of its kernels during the runs: {} (the prediction {:+.1f}%), error {}\n",
                     plan.plan, time_text(plan.at_pace_s->predicted),
                     100 * (plan.at_pace_s->predicted / plan.step_time_s.predicted - 1),
                     percent_text(plan.at_pace_s->error()));
}

std::string summary_table(const std::vector<Comparison>& plans) {
  const std::size_t width = widest_name(plans);
  std::string text = fmt::format("  {:<{}}{:>7}{:>7}{:>12}{:>12}{:>9}{:>13}\n", "plan", width, "steps", "runs",
                                 "predicted", "measured", "error", "noise floor");
  for (const Comparison& plan : plans) {
    text += fmt::format("  {:<{}}{:>7}{:>7}{:>12}{:>12}{:>9}{:>13}\n", plan.plan, width, plan.steps.size(), plan.runs,
                        time_text(plan.step_time_s.predicted), time_text(plan.step_time_s.measured),
                        percent_text(plan.step_time_s.error()), noise_text(plan));
  }
  text += "  (error: predicted - measured, of what was measured)\n";
  for (const Comparison& plan : plans) text += pace_line(plan);
  for (const Comparison& plan : plans) {
    const std::string busy = busy_machine_text(plan);
    if (!busy.empty()) text += fmt::format("  {}: {}\n", plan.plan, busy);
  }
  const bool noise_unknown = std::any_of(plans.begin(), plans.end(), [](const auto& p) { return !p.noise_floor_s; });
  if (noise_unknown) text += "  the noise floor is unknown where steps were run once: execute them with --repeat\n";
  if (const std::optional<double> tau = ranking_agreement(plans)) {
    text += fmt::format("  ranking of the plans, Kendall's tau: {:.2f}\n", *tau);
  }
  return text;
}

std::string family_table(const Comparison& plan) {
  std::string text = fmt::format("\n  {:<20}{:>14}{:>12}{:>12}{:>12}{:>9}\n", fmt::format("{}, all ranks", plan.plan),
                                 "instructions", "predicted", "measured", "difference", "error");
  for (std::size_t i = 0; i < std::min(worst_families, plan.families.size()); ++i) {
    const FamilyComparison& family = plan.families[i];
    text += fmt::format("  {:<20}{:>14}{:>12}{:>12}{:>12}{:>9}\n", family.family, family.instructions,
                        time_text(family.seconds.predicted), time_text(family.seconds.measured),
                        time_text(family.seconds.difference()), percent_text(family.seconds.error()));
  }
  if (plan.families.size() > worst_families) {
    text += fmt::format("  and {} families that differ less\n", plan.families.size() - worst_families);
  }
  return text + "  (difference: predicted - measured; exchanges and collectives hold the wait for the other side)\n";
}

std::string activity_table(const Comparison& plan) {
  std::string text =
      fmt::format("\n  {:<34}{:>12}{:>12}{:>12}\n", "mean of the ranks", "predicted", "measured", "difference");
  for (const Activity activity : all_activities) {
    const Pair& pair = plan.activities_s[index_of(activity)];
    if (pair.predicted == 0 && pair.measured == 0) continue;
    text += fmt::format("  {:<34}{:>12}{:>12}{:>12}\n", activity_name(activity), time_text(pair.predicted),
                        time_text(pair.measured), time_text(pair.difference()));
  }
  if (!plan.on_core_s) return text;
  const Pair& pair = *plan.on_core_s;
  text += fmt::format("  {:<34}{:>12}{:>12}{:>12}{:>9}\n", "kernels, while on a core", time_text(pair.predicted),
                      time_text(pair.measured), time_text(pair.difference()), percent_text(pair.error()));
  if (plan.core_share < 1) {
    text += fmt::format("  ranks share cores: kernels are predicted to have {:.0f}% of one on average\n",
                        100 * plan.core_share);
  }
  return text;
}

std::string rank_table(const Comparison& plan) {
  const int width = plan.stages == 1 ? 6 : 14;
  std::string text = fmt::format("\n  {:<{}}{:>16}{:>12}{:>9}{:>20}{:>12}\n", "rank", width, "busy, predicted",
                                 "measured", "error", "hidden, predicted", "measured");
  const std::vector<std::size_t> shown = worst_ranks(plan, ranks_of_table);
  for (const std::size_t i : shown) {
    const RankComparison& rank = plan.ranks[i];
    text +=
        fmt::format("  {:<{}}{:>16}{:>12}{:>9}{:>20}{:>12}\n", worker_name(plan, i), width,
                    time_text(rank.busy_s.predicted), time_text(rank.busy_s.measured),
                    percent_text(rank.busy_s.error()), share_text(rank.hidden_s.predicted, rank.exchange_s.predicted),
                    share_text(rank.hidden_s.measured, rank.exchange_s.measured));
  }
  if (shown.size() < plan.ranks.size()) {
    text += fmt::format("  and {} ranks whose busy time differs less\n", plan.ranks.size() - shown.size());
  }
  return text + "  (hidden: the share of the time of exchanges in which the rank computed)\n";
}

Json pair_json(const Pair& pair) {
  return {{"predicted", pair.predicted}, {"measured", pair.measured}};
}

// Null where it is not known.
template <class Value>
Json or_null(const std::optional<Value>& value) {
  if constexpr (std::is_same_v<Value, Pair>) {
    return value ? pair_json(*value) : Json();
  } else {
    return value ? Json(*value) : Json();
  }
}

// The rows of all plans, as CSV.
template <class Row>
std::string csv_of(const FigureTable<Row>& figures, std::vector<Row> (*rows_of)(const Comparison&),
                   const std::vector<Comparison>& plans) {
  std::vector<Row> all;
  for (const Comparison& plan : plans) {
    for (const Row& row : rows_of(plan)) all.push_back(row);
  }
  return figures.csv(all);
}

}  // namespace

std::optional<double> ranking_agreement(const std::vector<Comparison>& plans) {
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const Comparison& plan : plans) {
    predicted.push_back(plan.step_time_s.predicted);
    measured.push_back(plan.step_time_s.measured);
  }
  return kendall_tau(predicted, measured);
}

std::string comparison_table(const std::vector<Comparison>& plans) {
  std::string text = summary_table(plans);
  for (const Comparison& plan : plans) text += family_table(plan) + activity_table(plan) + rank_table(plan);
  return text;
}

Json plan_json(const Comparison& plan, const std::vector<ComparedWorker>& workers) {
  Json step_time = pair_json(plan.step_time_s);
  step_time["noise_floor"] = or_null(plan.noise_floor_s);
  Json activities = Json::array();
  for (const Activity activity : all_activities) {
    const Pair& pair = plan.activities_s[index_of(activity)];
    activities.push_back(
        {{"activity", activity_name(activity)}, {"predicted_s", pair.predicted}, {"measured_s", pair.measured}});
  }
  return {{"plan", plan.plan},
          {"steps", plan.steps},
          {"runs", plan.runs},
          {"step_time_s", step_time},
          {"core_share", plan.core_share},
          {"measured_core_share", or_null(measured_core_share(plan))},
          {"machine_was_busy", !busy_machine_text(plan).empty()},
          {"on_core_s", or_null(plan.on_core_s)},
          {"at_pace_s", or_null(plan.at_pace_s)},
          {"families", family_figures().json_list(families_of(plan))},
          {"activities", activities},
          {"ranks", worker_figures().json_list(workers)}};
}

std::string comparison_json(const std::vector<Comparison>& plans) {
  Json json = {{"schema", "hdpsim.comparison/1"}};
  if (plans.size() == 1) {
    json.update(plan_json(plans[0], workers_of(plans[0])));
  } else {
    json["kendall_tau"] = or_null(ranking_agreement(plans));
    json["plans"] = Json::array();
    for (const Comparison& plan : plans) json["plans"].push_back(plan_json(plan, workers_of(plan)));
  }
  return json_page(json);
}

std::string families_csv(const std::vector<Comparison>& plans) {
  return csv_of(family_figures(), families_of, plans);
}

std::string compared_ranks_csv(const std::vector<Comparison>& plans) {
  return csv_of(worker_figures(), workers_of, plans);
}

}  // namespace hdpsim
