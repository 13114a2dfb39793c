#include "sim/decide/decision_figures.h"

#include <fmt/format.h>

#include "sim/analysis/memory_verdict.h"
#include "sim/document/values.h"

namespace hdpsim {
namespace {

using Rows = FigureTable<DecisionRow>;

const Run& run_of(const DecisionRow& row) {
  return *row.decision->run;
}

std::string verdict_of(const DecisionRow& row) {
  const Run& run = run_of(row);
  return run.is_refused() ? "refused" : std::string(memory_fit_text(fit_of(run)));
}

Rows what_is_decided() {
  Rows all;
  all.add({"", "point", "", "the value of every path of the sweep"}, [](const DecisionRow& row) {
    Json point = Json::object();
    for (const auto& coordinate : run_of(row).info.coordinates) point[coordinate.path] = json_of(coordinate.value);
    return point;
  });
  all.add({"", "plan", "", "the plan"}, [](const DecisionRow& row) { return run_of(row).info.plan; });
  all.add({"gpus", "gpus", "GPUs", "GPUs of the job"}, [](const DecisionRow& row) { return run_of(row).info.gpus; });
  all.add({"verdict", "verdict", "",
           "whether it can train: `fits`, `at risk` (as in `memory_gb.verdict` of `result.json`), or else without "
           "figures: `does not fit`, or `refused` by its policy"},
          verdict_of);
  return all;
}

FigureTable<FactorRange> sure_day_figures() {
  FigureTable<FactorRange> all;
  all.add({"days_least", "least", "days",
           "the lower end of the interval that holds 90 % of published figures like this step time, in `days`"},
          at(&FactorRange::least));
  all.add({"days_most", "most", "days", "the upper end of that interval"}, at(&FactorRange::most));
  return all;
}

FigureTable<Training> training_figures() {
  FigureTable<Training> all;
  all.add({"goodput", "goodput", "share",
           "share of the time in steps that are not lost to failures, by Daly's model; 1 where the study has no "
           "`failures`"},
          at(&Training::goodput));
  all.add({"days", "days", "days", "days to train the tokens: tokens over `tokens_per_s` and `goodput`"},
          at(&Training::days));
  all.part({.path = "sure_days", .object = "Null where no published runs say it"}, sure_day_figures(),
           at(&Training::sure_days), Missing::null);
  all.add({"gpu_hours", "gpu_hours", "GPU-hours", "hours of all GPUs of the job in these days"},
          at(&Training::gpu_hours));
  all.add({"tokens_per_month", "tokens_per_month", "tokens", "tokens trained in 30 days, with `goodput`"},
          at(&Training::tokens_per_month));
  all.add({"energy_mwh", "energy_mwh", "MWh",
           "energy of the site: power of the GPUs by the file of prices in all of `gpu_hours`, times `pue`; empty "
           "without a power"},
          at(&Training::energy_mwh));
  all.add({"cost", "cost", "",
           "money for `gpu_hours` and `energy_mwh`, in the currency of the prices; empty without a price"},
          at(&Training::cost));
  return all;
}

FigureTable<Decision::Over> over_figures() {
  using Over = Decision::Over;
  const std::string first = "of the same plan at the first point; in a search, at the study's own size";
  FigureTable<Over> all;
  all.add({"days_over_first", "days", "ratio", fmt::format("`days` over those {}", first)}, at(&Over::days));
  all.add({"gpu_hours_over_first", "gpu_hours", "ratio", fmt::format("`gpu_hours` over those {}", first)},
          at(&Over::gpu_hours));
  all.add({"cost_over_first", "cost", "ratio", fmt::format("`cost` over that {}", first)}, at(&Over::cost));
  return all;
}

bool is_answer(const DecisionRow& row, const std::optional<SizeAnswer>& answer) {
  return answer && answer->gpus == run_of(row).info.gpus;
}

void add_search(Rows& all) {
  const auto searches = [](const DecisionRow& row) { return row.search != nullptr; };
  all.add(
      {"smallest", "smallest", "", "only of a search: whether it is the smallest size with which its plan is in time"},
      [](const DecisionRow& row) { return is_answer(row, row.search->smallest); }, searches);
  all.add(
      {"surest", "surest", "", "the same by `days_most`"},
      [](const DecisionRow& row) { return is_answer(row, row.search->surest); }, searches);
}

}  // namespace

const Rows& decision_row_figures() {
  static const Rows figures([](Rows& all) {
    const auto itself = [](const DecisionRow& row) -> const DecisionRow& { return row; };
    all.part({}, what_is_decided(), itself);
    all.part(
        {}, training_figures(), [](const DecisionRow& row) -> const auto& { return row.decision->training; },
        Missing::blank);
    all.part(
        {.path = "over_first", .object = "Null where one of the two does not train"}, over_figures(),
        [](const DecisionRow& row) -> const auto& { return row.decision->over_first; }, Missing::null);
    add_search(all);
  });
  return figures;
}

FigureSection decision_figures() {
  return {.title = "A decision",
          .note =
              "Rows are runs, of a search every size that was simulated. They begin with `point`, the swept values "
              "and `plan`. Places are those below a row: `rows[].days`.",
          .json = "decision.json",
          .files = {{"decision.csv", decision_row_figures().texts()}}};
}

}  // namespace hdpsim
