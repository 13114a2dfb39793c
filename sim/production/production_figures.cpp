#include "sim/production/production_figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/analysis/glossary.h"

namespace hdpsim {
namespace {

using Rows = FigureTable<ProductionRow>;

FigureTable<TimeSpent> spent_figures() {
  FigureTable<TimeSpent> all;
  for (const Activity activity : all_activities) {
    const std::string name(activity_name(activity));
    all.add({name + "_h", name, "h", std::string(activity_meaning(activity))},
            [activity](const TimeSpent& spent) { return spent.steps_s[index_of(activity)] / hour_s; });
  }
  const auto add = [&](const std::string& name, const std::string& sentence, double TimeSpent::*seconds) {
    all.add({name + "_h", name, "h", sentence}, [seconds](const TimeSpent& spent) { return spent.*seconds / hour_s; });
  };
  add("stragglers", "what steps that count took longer because devices were slow", &TimeSpent::stragglers_s);
  add("answers", "standing still for new plans or replaced nodes", &TimeSpent::answers_s);
  add("checkpoints", "writing checkpoints", &TimeSpent::checkpoints_s);
  add("lost", "steps and checkpoints that failures undid", &TimeSpent::lost_s);
  add("restarts", "from failures until steps ran again", &TimeSpent::restarts_s);
  return all;
}

void add_outcome(Rows& all) {
  all.add({"hours", "hours", "h", "time of the run, up to the end of its last step"},
          [](const ProductionRow& row) { return row.run().spent.total_s() / hour_s; });
  all.add({"steps", "steps", "steps", "steps that count: no failure undid them"},
          [](const ProductionRow& row) { return row.run().steps; });
  all.add({"lost_steps", "lost_steps", "steps", "steps that failures undid"},
          [](const ProductionRow& row) { return row.run().lost_steps; });
  all.add({"tokens", "tokens", "tokens", "tokens of the steps that count"},
          [](const ProductionRow& row) { return row.run().tokens; });
  all.add({"tokens_per_gpu_hour", "tokens_per_gpu_hour", "tokens", "the same over the GPUs and hours of the run"},
          [](const ProductionRow& row) { return row.tokens_per_gpu_hour(); });
  all.add({"goodput", "goodput", "share", "share of the time in steps that count"},
          [](const ProductionRow& row) { return row.run().spent.goodput(); });
  all.add({"mfu", "mfu", "share", "model FLOPs of the steps that count over what the GPUs could have done in the run"},
          [](const ProductionRow& row) { return row.result->mfu(row.run()); });
  all.add({"over_whole", "over_whole", "ratio",
           "`tokens_per_gpu_hour` over that of the same plan with all mechanisms of the study"},
          [](const ProductionRow& row) { return row.over_whole(); });
  all.add({"fits", "fits", "", "whether the plan fits the memory of devices and hosts in all of its steps"},
          [](const ProductionRow& row) { return row.result->fits(row.run()); });
  all.add({"interval_s", "interval_s", "s", "time between checkpoints; empty without failures"},
          [](const ProductionRow& row) { return row.run().interval_s; });
}

}  // namespace

double ProductionRow::over_whole() const {
  return tokens_per_gpu_hour() / ProductionRow{result, 0, plan}.tokens_per_gpu_hour();
}

std::vector<ProductionRow> rows_of(const ProductionResult& result) {
  std::vector<ProductionRow> rows;
  for (std::size_t variant = 0; variant < result.variants.size(); ++variant) {
    for (std::size_t plan = 0; plan < result.plans.size(); ++plan) rows.push_back({&result, variant, plan});
  }
  return rows;
}

const Rows& production_row_figures() {
  static const Rows figures([](Rows& all) {
    all.add({"without", "without", "", "the mechanism without which it ran (`--ablate`); empty: with all of them"},
            [](const ProductionRow& row) { return row.result->variants[row.variant].without; });
    all.add({"plan", "plan", "", "the plan"}, [](const ProductionRow& row) { return row.result->plans[row.plan]; });
    add_outcome(all);
    for (const ProductionEventKind kind : all_production_events) {
      const std::string name(production_event_name(kind));
      all.add({"events_" + name, "events." + name, "", fmt::format("how many events `{}` there were", name)},
              [kind](const ProductionRow& row) { return row.run().count(kind); });
    }
    all.part({.columns = "{}", .sentences = "{}", .path = "hours_spent", .object = "Hours; sum to `hours`"},
             spent_figures(), [](const ProductionRow& row) -> const TimeSpent& { return row.run().spent; });
  });
  return figures;
}

std::vector<ProductionEventRow> event_rows_of(const ProductionResult& result) {
  std::vector<ProductionEventRow> rows;
  for (std::size_t plan = 0; plan < result.plans.size(); ++plan) {
    const auto first = std::ssize(rows);
    for (const ProductionEvent& event : result.runs()[plan].events) rows.push_back({&result.plans[plan], &event});
    std::stable_sort(rows.begin() + first, rows.end(), [](const ProductionEventRow& a, const ProductionEventRow& b) {
      return a.event->at_s < b.event->at_s;
    });
  }
  return rows;
}

const FigureTable<ProductionEventRow>& production_event_figures() {
  using Events = FigureTable<ProductionEventRow>;
  static const Events figures([](Events& all) {
    all.add({"plan", "", "", "the plan"}, [](const ProductionEventRow& row) { return *row.plan; });
    all.add({"at_h", "", "h", "when it happened"},
            [](const ProductionEventRow& row) { return row.event->at_s / hour_s; });
    all.add(
        {"event", "", "",
         "`slow`, a device became slow; `recovered`, no longer is; `replanned`, the job trains as `answer` says, or as "
         "before; `replaced`, a spare took the place of its node; `failed`, a node; `checkpoint`; `loader_added` "
         "and `loader_removed`, as the mix of the sources drifts; `loader_lost`, one died; `loader_promoted`, its "
         "shadow took over"},
        [](const ProductionEventRow& row) { return std::string(production_event_name(row.event->kind)); });
    all.add({"at_step", "", "steps", "steps that had been trained by then and were not undone"},
            [](const ProductionEventRow& row) { return row.event->step; });
    all.add({"node", "", "", "the node"}, [](const ProductionEventRow& row) { return row.event->node; });
    all.add({"device", "", "", "the device"}, [](const ProductionEventRow& row) { return row.event->device; });
    all.add({"slowdown", "", "", "how many times longer its kernels took; 1 for other events"},
            [](const ProductionEventRow& row) { return row.event->slowdown; });
    all.add({"undone_steps", "", "steps", "steps that a failure undid"},
            [](const ProductionEventRow& row) { return row.event->lost_steps; });
    all.add({"stopped_s", "", "s", "how long the job stood still for it, or the source of a loader"},
            [](const ProductionEventRow& row) { return row.event->stopped_s; });
    all.add({"source", "", "", "the source of a loader"},
            [](const ProductionEventRow& row) { return row.event->source; });
    all.add({"layout", "", "",
             "with `answer: relayout`, the pipelines whose stages changed: layers of each stage x micro-batches; then "
             "the micro-batches of the others, and the devices without work"},
            [](const ProductionEventRow& row) { return row.event->layout; });
  });
  return figures;
}

FigureSection production_figures() {
  return {.title = "A production run",
          .note =
              "Places are those of a plan: `runs[].tokens`. With `--ablate` there are rows of the study without each "
              "of its mechanisms; events.csv is of the study as it is.",
          .json = "production.json",
          .files = {{"production.csv", production_row_figures().texts()},
                    {"events.csv", production_event_figures().texts()}}};
}

}  // namespace hdpsim
