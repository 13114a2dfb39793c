#include "sim/production/production_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/json.h"
#include "sim/document/values.h"
#include "sim/production/production_figures.h"
#include "sim/report/page/table_page.h"

namespace hdpsim {
namespace {

// What takes less than this share of every plan's time is not listed.
constexpr double least_share = 0.0005;

using OfRun = std::function<std::string(const ProductionRow&)>;

/// A table with a column for each plan.
class PlanColumns {
 public:
  PlanColumns(const ProductionResult& result, const std::string& title, const std::string& first)
      : result_(result), table_{title, {first}, {{"", {}}}} {
    table_.titles.insert(table_.titles.end(), result.plans.begin(), result.plans.end());
    table_.titles.emplace_back("");
  }

  void add(const std::string& name, const OfRun& cell, const std::string& what, std::size_t variant = 0) {
    TextRow row = {name};
    for (std::size_t plan = 0; plan < result_.plans.size(); ++plan) row.push_back(cell({&result_, variant, plan}));
    row.push_back(what);
    table_.groups.front().rows.push_back(std::move(row));
  }

  [[nodiscard]] const ShownTable& table() const { return table_; }

 private:
  const ProductionResult& result_;
  ShownTable table_;
};

std::string percent(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

ShownTable spent_table(const ProductionResult& result) {
  PlanColumns table(result, fmt::format("Where {:.4g} hours go", result.time_s / hour_s), "time");
  const auto add = [&](const std::string& name, const std::function<double(const TimeSpent&)>& seconds,
                       const std::string& what) {
    const auto share = [&](const ProductionRun& run) { return seconds(run.spent) / run.spent.total_s(); };
    const auto is_seen = [&](const ProductionRun& run) { return share(run) >= least_share; };
    if (std::none_of(result.runs().begin(), result.runs().end(), is_seen)) return;
    table.add(
        name, [&](const ProductionRow& row) { return percent(share(row.run())); }, what);
  };
  for (const Activity activity : all_activities) {
    add(
        std::string(activity_name(activity)), [=](const TimeSpent& spent) { return spent.steps_s[index_of(activity)]; },
        "");
  }
  add(
      "stragglers", [](const TimeSpent& spent) { return spent.stragglers_s; },
      "steps took longer because devices were slow");
  add(
      "answers", [](const TimeSpent& spent) { return spent.answers_s; }, "stops for new plans or replaced nodes");
  add(
      "checkpoints", [](const TimeSpent& spent) { return spent.checkpoints_s; }, "writing them");
  add(
      "lost", [](const TimeSpent& spent) { return spent.lost_s; }, "steps and checkpoints that failures undid");
  add(
      "restarts", [](const TimeSpent& spent) { return spent.restarts_s; }, "from failures until steps ran again");
  return table.table();
}

ShownTable outcome_table(const ProductionResult& result) {
  PlanColumns table(result, "What comes out", "");
  const auto tokens = [](const ProductionRow& row) { return row.tokens_per_gpu_hour(); };
  table.add(
      "steps", [](const ProductionRow& row) { return fmt::format("{}", row.run().steps); },
      "that count: no failure undid them");
  table.add(
      "tokens", [](const ProductionRow& row) { return short_number(static_cast<double>(row.run().tokens)); },
      "of these steps");
  table.add(
      "tokens/GPU-hour", [&](const ProductionRow& row) { return short_number(tokens(row)); }, "");
  table.add(
      "goodput", [](const ProductionRow& row) { return percent(row.run().spent.goodput()); },
      "share of the time in steps that count");
  table.add(
      "MFU", [](const ProductionRow& row) { return percent(row.result->mfu(row.run())); }, "of the whole run");
  if (result.plans.size() > 1) {
    table.add(
        "speed-up",
        [&](const ProductionRow& row) {
          if (row.plan == row.result->baseline) return std::string("-");
          return fmt::format("{:.2f}x", tokens(row) / tokens({row.result, 0, row.result->baseline}));
        },
        fmt::format("tokens over those of {}", result.plans[result.baseline]));
  }
  return table.table();
}

ShownTable event_table(const ProductionResult& result) {
  PlanColumns table(result, "What happens", "events");
  const auto add = [&](const std::string& name, ProductionEventKind kind, const std::string& what) {
    const auto happens = [&](const ProductionRun& run) { return run.count(kind) > 0; };
    if (std::none_of(result.runs().begin(), result.runs().end(), happens)) return;
    table.add(
        name, [kind](const ProductionRow& row) { return fmt::format("{}", row.run().count(kind)); }, what);
  };
  add("nodes failed", ProductionEventKind::failed, "");
  if (std::any_of(result.runs().begin(), result.runs().end(),
                  [](const ProductionRun& run) { return run.lost_steps > 0; })) {
    table.add(
        "steps undone", [](const ProductionRow& row) { return fmt::format("{}", row.run().lost_steps); }, "");
  }
  add("checkpoints", ProductionEventKind::checkpoint,
      result.runs().front().interval_s ? fmt::format("every {}", seconds_text(*result.runs().front().interval_s)) : "");
  add("devices slow", ProductionEventKind::slow, "while the job trained");
  add("new plans", ProductionEventKind::replanned, "for the speeds of devices");
  add("nodes replaced", ProductionEventKind::replaced, "because a device was slow");
  add("loaders died", ProductionEventKind::loader_lost, "without a shadow");
  add("loaders replaced", ProductionEventKind::loader_promoted, "by their shadows");
  add("loaders added", ProductionEventKind::loader_added, "as the mix of sources drifts");
  return table.table();
}

ShownTable ablation_table(const ProductionResult& result) {
  PlanColumns table(result, "What each mechanism costs", "without");
  for (std::size_t variant = 1; variant < result.variants.size(); ++variant) {
    table.add(
        result.variants[variant].without,
        [](const ProductionRow& row) {
          const std::string change = fmt::format("{:+.1f}%", 100 * (row.over_whole() - 1));
          return row.result->fits(row.run()) ? change : fmt::format("({})", change);
        },
        "", variant);
  }
  return table.table();
}

std::vector<ShownTable> tables_of(const ProductionResult& result) {
  std::vector<ShownTable> tables = {spent_table(result), outcome_table(result)};
  ShownTable events = event_table(result);
  if (!events.groups.front().rows.empty()) tables.push_back(std::move(events));
  if (result.variants.size() > 1) tables.push_back(ablation_table(result));
  return tables;
}

std::vector<std::string> notes_of(const ProductionResult& result) {
  std::vector<std::string> notes;
  for (std::size_t plan = 0; plan < result.plans.size(); ++plan) {
    const ProductionRun& run = result.runs()[plan];
    if (result.fits(run)) continue;
    notes.push_back(
        fmt::format("{} does not fit: {} of {} on a device, {} of {} on its host; its figures are of steps "
                    "that cannot run",
                    result.plans[plan], bytes_text(run.device), bytes_text(result.device_memory), bytes_text(run.host),
                    bytes_text(result.host_memory)));
  }
  if (result.variants.size() > 1) {
    notes.emplace_back("without: tokens per GPU-hour over those of the whole study; in brackets where it does not fit");
  }
  return notes;
}

// The plan with the most tokens of those that fit, or of all.
std::size_t best_plan(const ProductionResult& result) {
  const auto rank = [&](std::size_t plan) {
    const ProductionRun& run = result.runs()[plan];
    return std::pair(result.fits(run), run.tokens_per_gpu_hour(result.gpus));
  };
  std::size_t best = 0;
  for (std::size_t plan = 1; plan < result.plans.size(); ++plan) {
    if (rank(plan) > rank(best)) best = plan;
  }
  return best;
}

std::string lead_of(const ProductionResult& result) {
  const ProductionRow best{&result, 0, best_plan(result)};
  std::string lead = fmt::format("{} trains {} tokens in {:.4g} hours, {} a GPU-hour", result.plans[best.plan],
                                 short_number(static_cast<double>(best.run().tokens)),
                                 best.run().spent.total_s() / hour_s, short_number(best.tokens_per_gpu_hour()));
  if (best.plan != result.baseline) {
    const ProductionRow baseline{&result, 0, result.baseline};
    lead += fmt::format(", {:.2f} times those of {}", best.tokens_per_gpu_hour() / baseline.tokens_per_gpu_hour(),
                        result.plans[result.baseline]);
  }
  return lead + ".";
}

}  // namespace

std::string production_table(const ProductionResult& result) {
  std::string text = fmt::format("{}: {}\n", result.study, result.setting);
  for (const ShownTable& table : tables_of(result)) text += fmt::format("\n{}", table_text(table));
  text += "\n";
  for (const std::string& note : notes_of(result)) text += note + "\n";
  return text + fmt::format("costs: {}\n", result.profile);
}

std::string production_page(const ProductionResult& result) {
  std::vector<std::string> notes = {result.setting};
  for (const std::string& note : notes_of(result)) notes.push_back(note);
  return table_page({.title = fmt::format("{}: a production run", result.study),
                     .lead = lead_of(result),
                     .notes = std::move(notes),
                     .plans = result.plans,
                     .tables = tables_of(result)});
}

std::string production_csv(const ProductionResult& result) {
  return production_row_figures().csv(rows_of(result));
}

std::string production_json(const ProductionResult& result, const Value& study, std::string_view version) {
  return json_page({{"schema", "hdpsim.production/1"},
                    {"hdpsim", version},
                    {"study", json_of(study)},
                    {"gpus", result.gpus},
                    {"runs", production_row_figures().json_list(rows_of(result))}});
}

void write_production(OutputFolder& folder, const ProductionResult& result, const Value& study,
                      std::string_view version) {
  folder.write("study.yaml", to_yaml(study));
  folder.write("production.csv", production_csv(result));
  folder.write("events.csv", production_event_figures().csv(event_rows_of(result)));
  folder.write("production.html", production_page(result));
  folder.write("production.json", production_json(result, study, version));
}

std::vector<std::string> production_file_names() {
  return {"study.yaml", "production.csv", "events.csv", "production.html", "production.json"};
}

}  // namespace hdpsim
