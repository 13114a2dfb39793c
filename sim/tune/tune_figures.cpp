#include "sim/tune/tune_figures.h"

namespace hdpsim {
namespace {

using Candidates = FigureTable<RankedCandidate>;
using Fate = TunedCandidate::Fate;

const RankedCandidate* if_it_can_run(const RankedCandidate& row) {
  return row.candidate->fate == Fate::infeasible ? nullptr : &row;
}
const RankedCandidate* if_it_has_a_price(const RankedCandidate& row) {
  return row.price->has_value() ? &row : nullptr;
}

Candidates cost_figures() {
  Candidates all;
  all.add({"cost_per_gigatoken", "cost_per_gigatoken", "", "`gpu_hours_per_gigatoken` at the price of the study"},
          [](const RankedCandidate& row) { return (*row.price)->amount * row.candidate->gpu_hours_per_gigatoken; });
  return all;
}

Candidates figures_of_those_that_can_run() {
  using Told = TunedCandidate;
  Candidates all;
  all.add({"gpus", "gpus", "GPUs", "GPUs of its mesh"}, through(&RankedCandidate::candidate, &Told::gpus));
  all.add({"capacity", "capacity", "tokens", "tokens that a rank holds of a micro-batch"},
          through(&RankedCandidate::candidate, &Told::capacity));
  all.add({"steps", "steps", "steps", "steps that were simulated in the study's fidelity"},
          through(&RankedCandidate::candidate, &Told::steps));
  all.add({"step_time_s", "step_time_s", "s",
           "mean step time; of a candidate that did not run all steps, the winner's multiplied by `ratio`"},
          through(&RankedCandidate::candidate, &Told::time_s));
  all.add({"closed_form_s", "closed_form_s", "s",
           "lower bound of the probe step's time: its closed form; for those far from the best, the work of the "
           "busiest rank"},
          through(&RankedCandidate::candidate, &Told::bound_s));
  all.add({"ratio", "ratio.mean", "", "its time over the winner's, on the steps that both ran"},
          through(&RankedCandidate::candidate, &Told::ratio));
  all.add({"ratio_p5", "ratio.p5", "", "5th percentile of that ratio step by step"},
          through(&RankedCandidate::candidate, &Told::ratio_p5));
  all.add({"ratio_p95", "ratio.p95", "", "95th percentile of that ratio step by step"},
          through(&RankedCandidate::candidate, &Told::ratio_p95));
  all.add({"mfu", "mfu", "share", "model FLOPs utilization at `step_time_s`"},
          through(&RankedCandidate::candidate, &Told::mfu));
  all.add({"device_peak_gb", "device_peak_gb", "GB", "memory of the fullest device in the steps that were simulated"},
          through(&RankedCandidate::candidate, &Told::device_gb));
  all.add({"device_at_most_gb", "device_at_most_gb", "GB",
           "the same where the allocator leaves the largest gaps that were measured"},
          through(&RankedCandidate::candidate, &Told::device_at_most_gb));
  all.add({"at_risk", "at_risk", "", "whether it fits, but not with such gaps"},
          through(&RankedCandidate::candidate, &Told::is_at_risk));
  all.add({"gpu_hours_per_gigatoken", "gpu_hours_per_gigatoken", "GPU-hours", "GPU-hours for 10^9 tokens"},
          through(&RankedCandidate::candidate, &Told::gpu_hours_per_gigatoken));
  all.part({}, cost_figures(), if_it_has_a_price, Missing::blank);
  all.add({"on_front", "on_front", "", "whether no other candidate beats it in time, memory and GPUs together"},
          through(&RankedCandidate::candidate, &Told::on_front));
  all.add({"best_of_plan", "best_of_plan", "", "whether it is the best candidate of its plan"},
          through(&RankedCandidate::candidate, &Told::best_of_plan));
  return all;
}

}  // namespace

const FigureTable<RankedCandidate>& candidate_figures() {
  static const FigureTable<RankedCandidate> figures([](auto& all) {
    using Told = TunedCandidate;
    all.add({"rank", "", "", "place in the ranking, from 1"}, [](const RankedCandidate& row) { return row.rank; });
    all.add({"choices", "choices", "", "what it has chosen where the space leaves a choice"},
            through(&RankedCandidate::candidate, &Told::text));
    all.add({"plan", "plan", "", "its plan"}, through(&RankedCandidate::candidate, &Told::plan));
    all.add(
        {"fate", "fate", "",
         "how far it came: `finished` (simulated over all steps), `slower` (dropped on the way), `bounded` (a lower "
         "bound is too slow), `infeasible` (cannot run)"},
        [](const RankedCandidate& row) { return fate_name(row.candidate->fate); });
    all.add({"reason", "reason", "", "why it cannot run"}, through(&RankedCandidate::candidate, &Told::reason), {},
            [](const RankedCandidate& row) { return row.candidate->fate == Fate::infeasible; });
    all.part({}, figures_of_those_that_can_run(), if_it_can_run, Missing::blank);
    all.order_json({"choices", "plan", "fate", "reason", "gpus", "capacity", "steps", "step_time_s", "closed_form_s",
                    "ratio", "mfu", "device_peak_gb", "device_at_most_gb", "at_risk", "gpu_hours_per_gigatoken",
                    "on_front", "best_of_plan"});
  });
  return figures;
}

FigureSection tuning_figures() {
  return {.title = "A tuning",
          .note = "Rows are candidates, best first. Places are those below a candidate: `candidates[].mfu`.",
          .json = "tune.json",
          .files = {{"candidates.csv", candidate_figures().texts()}}};
}

std::string_view fate_name(TunedCandidate::Fate fate) {
  switch (fate) {
    case Fate::finished:
      return "finished";
    case Fate::slower:
      return "slower";
    case Fate::bounded:
      return "bounded";
    case Fate::infeasible:
      return "infeasible";
  }
  return "";
}

}  // namespace hdpsim
