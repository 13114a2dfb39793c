#include "sim/compare/comparison_figures.h"

#include <fmt/format.h>

namespace hdpsim {
namespace {

FigureTable<ComparedFamily> figures_of_a_family() {
  FigureTable<ComparedFamily> all;
  all.add({"plan", "", "", "the plan"}, [](const ComparedFamily& row) { return row.plan->plan; });
  all.add({"family", "family", "", "instructions of one kind: what they do, and in which direction"},
          [](const ComparedFamily& row) { return row.family->family; });
  all.add({"instructions", "instructions", "", "instructions of the family in a step, of all ranks"},
          [](const ComparedFamily& row) { return row.family->instructions; });
  all.add({"predicted_s", "predicted_s", "s", "predicted time of all of them together"},
          [](const ComparedFamily& row) { return row.family->seconds.predicted; });
  all.add({"measured_s", "measured_s", "s", "measured time of all of them together"},
          [](const ComparedFamily& row) { return row.family->seconds.measured; });
  return all;
}

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

FigureTable<ComparedWorker> figures_of_a_worker() {
  const auto stages = [](const ComparedWorker& row) { return static_cast<std::size_t>(row.plan->stages); };
  FigureTable<ComparedWorker> all;
  all.add({"plan", "", "", "the plan"}, [](const ComparedWorker& row) { return row.plan->plan; });
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
  return all;
}

}  // namespace

const FigureTable<ComparedFamily>& family_figures() {
  static const auto figures = figures_of_a_family();
  return figures;
}

const FigureTable<ComparedWorker>& worker_figures() {
  static const auto figures = figures_of_a_worker();
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

}  // namespace hdpsim
