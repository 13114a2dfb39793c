#include "sim/compare/comparison_figures.h"

#include <fmt/format.h>

#include "sim/analysis/glossary.h"
#include "sim/compare/comparison.h"

namespace hdpsim {
namespace {

void add_pair(FigureTable<ComparedWorker>& all, const std::string& name, const std::string& meaning,
              Pair RankComparison::*pair) {
  const auto of = [=](double Pair::*side) {
    return [=](const ComparedWorker& row) { return row.plan->ranks[row.worker].*pair.*side; };
  };
  all.add({fmt::format("predicted_{}_s", name), fmt::format("{}_s.predicted", name), "s",
           fmt::format("predicted {}", meaning)},
          of(&Pair::predicted));
  all.add({fmt::format("measured_{}_s", name), fmt::format("{}_s.measured", name), "s",
           fmt::format("measured {}", meaning)},
          of(&Pair::measured));
}

auto seconds_in(Duration ExecutedRun::*time) {
  return [=](const ExecutedRun& row) { return (row.*time).seconds(); };
}

auto total_of(Breakdown ExecutedRun::*times) {
  return [=](const ExecutedRun& row) { return (row.*times).total().seconds(); };
}

void add_activities(FigureTable<ExecutedRun>& all, const std::string& source, Breakdown ExecutedRun::*times) {
  for (const Activity activity : all_activities) {
    const std::string_view name = activity_name(activity);
    all.add(
        {fmt::format("{}_{}_s", source, name), "", "s", fmt::format("{} time: {}", source, activity_meaning(activity))},
        [=](const ExecutedRun& row) { return (row.*times)[activity].seconds(); });
  }
}

// Empty if the executor does not measure it.
std::optional<double> core_share_of(const ExecutedRun& row) {
  const double on_core_s = computed_seconds({row.processor});
  return on_core_s > 0 ? std::optional(on_core_s / computed_seconds({row.measured})) : std::nullopt;
}

}  // namespace

std::vector<ComparedFamily> families_of(const Comparison& plan) {
  std::vector<ComparedFamily> families;
  for (const FamilyComparison& family : plan.families) families.push_back({&plan, &family});
  return families;
}

std::vector<ComparedWorker> workers_of(const Comparison& plan) {
  std::vector<ComparedWorker> workers;
  for (std::size_t worker = 0; worker < plan.ranks.size(); ++worker) workers.push_back({&plan, worker});
  return workers;
}

const FigureTable<ComparedFamily>& family_figures() {
  static const FigureTable<ComparedFamily> figures([](auto& all) {
    all.add({"plan", "", "", "the plan"}, through(&ComparedFamily::plan, &Comparison::plan));
    all.add({"family", "family", "", "instructions of one kind: what they do, and in which direction"},
            through(&ComparedFamily::family, &FamilyComparison::family));
    all.add({"instructions", "instructions", "", "instructions of the family in a step, of all ranks"},
            through(&ComparedFamily::family, &FamilyComparison::instructions));
    all.add({"predicted_s", "predicted_s", "s", "predicted time of all of them together"},
            through(&ComparedFamily::family, &FamilyComparison::seconds, &Pair::predicted));
    all.add({"measured_s", "measured_s", "s", "measured time of all of them together"},
            through(&ComparedFamily::family, &FamilyComparison::seconds, &Pair::measured));
  });
  return figures;
}

const FigureTable<ComparedWorker>& worker_figures() {
  static const FigureTable<ComparedWorker> figures([](auto& all) {
    const auto stages = [](const ComparedWorker& row) { return static_cast<std::size_t>(row.plan->stages); };
    all.add({"plan", "", "", "the plan"}, through(&ComparedWorker::plan, &Comparison::plan));
    all.add({"rank", "rank", "", "number of the HDP rank, from 0"},
            [=](const ComparedWorker& row) { return row.worker / stages(row); });
    add_pair(all, "busy", "time in which the rank waits for no other", &RankComparison::busy_s);
    add_pair(all, "exchange", "time in which an exchange of the rank was under way", &RankComparison::exchange_s);
    add_pair(all, "hidden", "part of the time of exchanges in which the rank computed", &RankComparison::hidden_s);
    all.add(
        {"stage", "stage", "", "the rank's stage of the pipeline; the JSON has it where there are several"},
        [=](const ComparedWorker& row) { return row.worker % stages(row); }, {},
        [=](const ComparedWorker& row) { return stages(row) > 1; });
    all.order_json({"rank", "stage"});
  });
  return figures;
}

FigureSection comparison_figures() {
  return {.title = "A comparison",
          .note =
              "Places are those below a family and below a rank: `families[].measured_s`, `ranks[].busy_s.measured`; "
              "of several plans\nthey stand below each: `plans[].ranks[]`.",
          .json = "comparison.json",
          .files = {{"families.csv", family_figures().texts()}, {"ranks.csv", worker_figures().texts()}}};
}

const FigureTable<ExecutedRun>& executed_run_figures() {
  static const FigureTable<ExecutedRun> figures([](auto& all) {
    using Row = ExecutedRun;
    all.add({"step", "", "", "number of the step, from 0"}, at(&Row::step));
    all.add({"loss", "", "", "the loss of the step"}, at(&Row::loss));
    all.add({"tokens", "", "tokens", "tokens of the step"}, at(&Row::tokens));
    all.add({"predicted_s", "", "s", "predicted time of the step"}, total_of(&Row::predicted));
    all.add({"measured_s", "", "s", "measured time of the step"}, total_of(&Row::measured));
    all.add({"tokens_per_s", "", "tokens/s", "`tokens` over the measured time"},
            [](const Row& row) { return static_cast<double>(row.tokens) / row.measured.total().seconds(); });
    add_activities(all, "predicted", &Row::predicted);
    add_activities(all, "measured", &Row::measured);
    all.add({"run", "", "", "number of the run of this step, from 1"}, at(&Row::run));
    all.add({"plan_exposed_s", "", "s", "the longest that a rank waited for its plan"}, seconds_in(&Row::exposed));
    all.add({"planning_s", "", "s", "time of planning the step, while the one before ran"}, seconds_in(&Row::planning));
    all.add({"at_pace_s", "", "s", "the prediction with kernels as fast as they were during this run (`--pace`)"},
            [](const Row& row) { return row.at_pace ? std::optional(row.at_pace->seconds()) : std::nullopt; });
    all.add({"core_share", "", "share", "share of the time of kernels in which their threads had a core"},
            core_share_of);
  });
  return figures;
}

FigureSection execution_figures() {
  return {.title = "An execution",
          .note = "Times are means over the ranks.",
          .json = "",
          .files = {{"steps.csv", executed_run_figures().texts()}}};
}

}  // namespace hdpsim
