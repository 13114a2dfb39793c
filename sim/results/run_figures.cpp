#include "sim/results/run_figures.h"

#include <fmt/format.h>

#include "sim/analysis/glossary.h"
#include "sim/analysis/memory_verdict.h"
#include "sim/document/json.h"
#include "sim/document/values.h"

namespace hdpsim {
namespace {

using RunTable = FigureTable<Run>;

template <class... Members>
auto of_info(Members... members) {
  return at(&Run::info, members...);
}
template <class... Members>
auto of_metrics(Members... members) {
  return at(&Run::metrics, members...);
}

// A run that was refused has no figures.
const Run* unless_refused(const Run& run) {
  return run.is_refused() ? nullptr : &run;
}

// A mean and percentiles around it; the columns of intervals leave the mean to the figure that they are around.
FigureTable<Percentiles> percentiles(bool mean_has_column = true) {
  FigureTable<Percentiles> all;
  all.add({mean_has_column ? "mean" : "", "mean", "", "mean"}, at(&Percentiles::mean));
  all.add({"p5", "p5", "", "5th percentile"}, at(&Percentiles::p5));
  all.add({"p50", "p50", "", "median"}, at(&Percentiles::p50));
  all.add({"p95", "p95", "", "95th percentile"}, at(&Percentiles::p95));
  return all;
}

// A batch of no work has no bound.
std::optional<double> over_bound(const Run& run) {
  const RunMetrics& metrics = run.metrics;
  return metrics.bound_s > 0 ? std::optional(metrics.step_time_s.mean / metrics.bound_s) : std::nullopt;
}

// A count of every step, as a mean over the steps.
auto mean_of_steps(std::int64_t StepResult::*count) {
  return [=](const Run& run) {
    double sum = 0;
    for (const StepResult& step : run.result.steps) sum += static_cast<double>(step.*count);
    return sum / static_cast<double>(run.result.steps.size());
  };
}

Json point_of(const Run& run) {
  Json point = Json::object();
  for (const auto& coordinate : run.info.coordinates) point[coordinate.path] = json_of(coordinate.value);
  return point;
}

FigureTable<RunInfo::Neighbour> neighbour_figures() {
  using Neighbour = RunInfo::Neighbour;
  FigureTable<Neighbour> all;
  all.add({"", "name", "", "name of the job in the study"}, at(&Neighbour::name));
  all.add({"", "what", "", "the job in a few words"}, at(&Neighbour::what));
  all.add({"", "gpus", "GPUs", "GPUs of the job"}, at(&Neighbour::gpus));
  return all;
}

void add_what_ran(RunTable& runs) {
  runs.add({"", "point", "", "the value of every path of the sweep"}, point_of);
  runs.add({"", "plan", "", "the plan"}, of_info(&RunInfo::plan));
  runs.add({"", "profile", "", "name and label of the device profile"}, of_info(&RunInfo::profile));
  runs.add({"gpus", "gpus", "GPUs", "GPUs of the job"}, of_info(&RunInfo::gpus));
  runs.list({"", "background", "", "jobs that ran at the same time"}, neighbour_figures(),
            of_info(&RunInfo::background));
  runs.add({"refusal", "refusal", "",
            "why the run has no figures: where its plan is named, the policy's own words, and the first step that it "
            "has no plan for"},
           refusal_text, &Run::is_refused);
}

void add_size(RunTable& runs) {
  runs.add({"steps", "steps", "steps", "steps that were simulated"}, of_metrics(&RunMetrics::steps));
  runs.add({"sequences_per_step", "sequences_per_step", "sequences", "sequences of a step, mean over the steps"},
           mean_of_steps(&StepResult::sequences));
  runs.add({"tokens_per_step", "tokens_per_step", "tokens", "tokens of a step, mean over the steps"},
           mean_of_steps(&StepResult::tokens));
}

FigureTable<Speedup> speedup_figures() {
  FigureTable<Speedup> all;
  all.add({"versus", "versus", "", "the plan that speed-ups are over"}, at(&Speedup::versus));
  all.add({"speedup_mean", "mean", "", "mean time of a token of the plan `versus` over that of this plan"},
          at(&Speedup::mean));
  all.add({"speedup_p5", "p5", "", "5th percentile of the speed-ups step by step: both plans read the same batches"},
          at(&Speedup::p5));
  all.add({"speedup_p95", "p95", "", "95th percentile of the speed-ups step by step"}, at(&Speedup::p95));
  return all;
}

FigureTable<Speedup> best_static_speedups() {
  FigureTable<Speedup> all;
  all.add({"over_best_static_mean", "mean", "", "mean time of a token of the best `static` over that of this plan"},
          at(&Speedup::mean));
  all.add({"over_best_static_p5", "p5", "", "5th percentile of these speed-ups step by step"}, at(&Speedup::p5));
  all.add({"over_best_static_p95", "p95", "", "95th percentile of these speed-ups step by step"}, at(&Speedup::p95));
  return all;
}

FigureTable<BestStaticSpeedup> best_static_figures() {
  using Best = BestStaticSpeedup;
  FigureTable<Best> all;
  all.add({"best_static_sharing", "sharing", "",
           "how the best `static` of the same tp and pp shares a sequence: a word of `mesh.cp_comm_type`"},
          at(&Best::sharing));
  all.add({"best_static_cut", "cut", "", "which tokens its ranks hold: a word of `mesh.cp_cut`"}, at(&Best::cut));
  all.add({"best_static_cp", "cp", "ranks", "the ranks of its groups"}, at(&Best::cp));
  all.add({"best_static_step_time_s", "step_time_s", "s", "its mean step time"}, at(&Best::step_time_s));
  all.part({}, best_static_speedups(), at(&Best::speedup));
  return all;
}

void add_rates(RunTable& runs) {
  runs.part({"step_time_{}_s", "{} of the step times", "step_time_s", "s"}, percentiles(),
            of_metrics(&RunMetrics::step_time_s));
  runs.add({"tokens_per_s", "tokens_per_s", "tokens/s", "tokens of all steps over their time"},
           of_metrics(&RunMetrics::tokens_per_s));
  runs.add({"tokens_per_s_per_gpu", "tokens_per_s_per_gpu", "tokens/s", "`tokens_per_s` for each GPU"},
           of_metrics(&RunMetrics::tokens_per_s_per_gpu));
  runs.add({"mfu", "mfu", "share",
            "model FLOPs utilization: the operations that the model needs, of the peak of all GPUs over the same time; "
            "repeated work does not count"},
           of_metrics(&RunMetrics::mfu));
  runs.add({"bound_s", "bound_s", "s",
            "time that no plan of the same sequences on the same mesh beats by the planners' costs, mean over the "
            "steps: of the work spread evenly, the longest sequence, and, in steps without offload, the capacity; then "
            "of gradients and the optimizer after the last pass"},
           of_metrics(&RunMetrics::bound_s));
  runs.add({"over_bound", "over_bound", "ratio", "mean step time over `bound_s`"}, over_bound);
}

void add_breakdown(RunTable& runs) {
  runs.part({.path = "breakdown_s", .object = "Means over ranks and steps; they sum to the mean step time"},
            breakdown_figures(), of_metrics(&RunMetrics::breakdown));
}

FigureTable<MemoryParts> memory_part_figures() {
  FigureTable<MemoryParts> all;
  for (std::size_t i = 0; i < memory_parts; ++i) {
    const auto part = static_cast<MemoryPart>(i);
    const std::string name(memory_part_name(part));
    all.add({"", name, "", fmt::format("{} on the fullest device at its fullest moment", name)},
            [=](const MemoryParts& parts) { return parts[part]; });
  }
  return all;
}

void add_memory(RunTable& runs) {
  runs.part({.path = "memory_gb"}, peak_figures(), of_metrics(&RunMetrics::memory));
  runs.part({.path = "memory_gb.parts"}, memory_part_figures(), of_metrics(&RunMetrics::memory, &MemoryUse::parts));
  runs.add({"", "memory_gb.rank", "", "the rank of the fullest device"},
           [](const Run& run) { return run.metrics.memory.rank.index(); });
  runs.add({"", "memory_gb.stage", "", "the pipeline stage of the fullest device"},
           of_metrics(&RunMetrics::memory, &MemoryUse::stage));
  runs.add({"", "memory_gb.step", "", "the step in which that device is fullest"},
           at(&Run::result, &RunResult::memory, &StepMemory::step));
  runs.add({"", "memory_gb.at_s", "", "the moment at which it is, from the start of the step"},
           of_metrics(&RunMetrics::memory, &MemoryUse::at));
  runs.add({"", "memory_gb.tokens_held", "tokens", "the most tokens that a micro-batch leaves on a rank"},
           of_metrics(&RunMetrics::tokens_held));
  runs.add({"fits", "memory_gb.fits", "",
            "whether devices and hosts have that much memory, and ranks hold no more tokens than the capacity"},
           of_metrics(&RunMetrics::fits));
  runs.add(
      {"verdict", "memory_gb.verdict", "",
       "`fits`, `does not fit`, or `at risk`: it fits, but not where the allocator leaves the largest gaps that were "
       "measured (`device_at_most_gb`)"},
      [](const Run& run) { return memory_fit_text(fit_of(run)); });
}

// The baseline of a speed-up on a mesh of its own. It has no columns: rows are runs of the study.
RunTable tuned_baseline_figures() {
  RunTable all;
  all.add({"", "choices", "", "what the search has chosen"}, of_info(&RunInfo::tuned));
  all.add({"", "setting", "", "model, cluster, mesh and batches in a few words"}, of_info(&RunInfo::setting));
  add_rates(all);
  add_breakdown(all);
  add_memory(all);
  return all;
}

void add_speed(RunTable& runs) {
  add_rates(runs);
  runs.part({.path = "speedup", .object = "Null unless the study compares plans"}, speedup_figures(),
            of_metrics(&RunMetrics::speedup), Missing::null);
  runs.part(
      {.path = "speedup_over_best_static",
       .object = "Null unless speed-ups are over `static` as the study states it. The best one has the same tp and "
                 "pp and shares a sequence in the way that is fastest"},
      best_static_figures(), of_metrics(&RunMetrics::over_best_static), Missing::null);
  runs.part({.columns = "",
             .path = "speedup.tuned_baseline",
             .object = "The baseline on the mesh that was found for it, where `compare_to` asks for that"},
            tuned_baseline_figures(), at(&Run::tuned_baseline));
  add_breakdown(runs);
  runs.part({.path = "rank_busy_s"}, busy_figures(), of_metrics(&RunMetrics::busy));
}

void add_capacity(RunTable& runs) {
  runs.add({"", "capacity", "tokens", "tokens that a rank holds of a micro-batch: the study's `mesh.capacity`"},
           of_info(&RunInfo::capacity));
}

void add_evidence(RunTable& runs) {
  for (std::size_t i = 0; i < evidence_kinds; ++i) {
    const auto evidence = static_cast<Evidence>(i);
    const std::string name(evidence_name(evidence));
    runs.add({fmt::format("{}_share", name), fmt::format("evidence.{}", name), "share",
              fmt::format("share of the ranks' time with this evidence: {}", evidence_meaning(evidence))},
             [=](const Run& run) { return run.metrics.evidence[i]; });
  }
  runs.add(events_text(), of_metrics(&RunMetrics::events));
  runs.part({.path = "connections"}, connection_figures(), of_metrics(&RunMetrics::connections));
  runs.add(connection_memory_text(), of_metrics(&RunMetrics::memory, &MemoryUse::connections));
  runs.add({"", "not_modelled", "",
            "keys that the profile lacks and that would cost something in the run: `first_contact` and `communicator` "
            "in cold steps, `memory_per_peer`, `compute_beside_communication`"},
           of_info(&RunInfo::not_modelled));
}

FigureTable<Goodput> goodput_figures() {
  FigureTable<Goodput> all;
  all.add({"", "mtbf_s", "s", "mean time between failures of the job"}, at(&Goodput::mtbf_s));
  all.add({"", "young_s", "s", "the best time between checkpoints by Young's formula"}, at(&Goodput::young_s));
  all.add({"", "daly_s", "s", "the best time between checkpoints by Daly's formula"}, at(&Goodput::daly_s));
  all.add({"checkpoint_every_steps", "checkpoint_every_steps", "steps", "steps between two checkpoints"},
          at(&Goodput::every_steps));
  all.add({"goodput", "share", "share", "share of the time in steps that are not lost, by Daly's model"},
          at(&Goodput::share));
  all.add({"goodput_simulated", "simulated", "share", "`goodput` with random failures simulated"},
          at(&Goodput::simulated));
  all.add({"goodput_simulated_error", "simulated_error", "share", "standard error of `goodput_simulated`"},
          at(&Goodput::simulated_error));
  return all;
}

FigureTable<VarianceShare> variance_figures() {
  FigureTable<VarianceShare> all;
  all.add({"", "source", "",
           "what part of the variance comes from: a family of costs, `batches`, `slow nodes` or `routes`"},
          at(&VarianceShare::source));
  all.add({"", "share", "share", "its share of the variance, to first order"}, at(&VarianceShare::share));
  all.add({"", "deviation", "share", "deviation of the mean step time if it were the only source"},
          at(&VarianceShare::deviation));
  return all;
}

// The word of a study.
std::string_view fate_name(Overlong fate) {
  switch (fate) {
    case Overlong::split:
      return "split";
    case Overlong::truncate:
      return "truncate";
    case Overlong::drop:
      return "drop";
  }
  return "";
}

std::string_view order_name(TraceOrder order) {
  switch (order) {
    case TraceOrder::shuffle:
      return "shuffle";
    case TraceOrder::file:
      return "file";
    case TraceOrder::steps:
      return "steps";
  }
  return "";
}

PartText interval_of(const std::string& figure, const std::string& unit = "") {
  return {fmt::format("{}_{{}}_resampled", figure),
          fmt::format("{{}} of `{}` over the samples of a study with `uncertainty`", figure), figure, unit};
}

FigureTable<Uncertainty> uncertainty_figures() {
  const FigureTable<Percentiles> interval = percentiles(false);
  FigureTable<Uncertainty> all;
  all.add({"", "samples", "", "how often the run was resampled"}, at(&Uncertainty::samples));
  all.part(interval_of("step_time_s", "s"), interval, at(&Uncertainty::step_time_s));
  all.part(interval_of("tokens_per_s", "tokens/s"), interval, at(&Uncertainty::tokens_per_s));
  all.part(interval_of("tokens_per_s_per_gpu", "tokens/s"), interval, at(&Uncertainty::tokens_per_s_per_gpu));
  all.part(interval_of("mfu", "share"), interval, at(&Uncertainty::mfu));
  all.part(interval_of("speedup"), interval, at(&Uncertainty::speedup), Missing::null);
  all.list({"", "variance", "", "what the variance comes from, largest share first"}, variance_figures(),
           at(&Uncertainty::shares));
  all.add({"", "unknown", "", "families that take time and whose errors are not known"}, at(&Uncertainty::unknown));
  all.add({"", "advice", "", "what to measure to narrow the intervals most"}, at(&Uncertainty::advice));
  return all;
}

FigureTable<FactorRange> range_figures() {
  FigureTable<FactorRange> all;
  all.add({"least", "least", "", "the lower end"}, at(&FactorRange::least));
  all.add({"most", "most", "", "the upper end"}, at(&FactorRange::most));
  return all;
}

PartText sure_interval_of(const std::string& figure, const std::string& columns, const std::string& unit = "") {
  return {columns,
          fmt::format("{{}} of the interval that holds 90 % of published figures like this `{}`, by the errors of "
                      "published runs of its kind",
                      figure),
          figure, unit};
}

FigureTable<Confidence> confidence_figures() {
  const FigureTable<FactorRange> range = range_figures();
  FigureTable<Confidence> all;
  all.part(sure_interval_of("step_time_s", "step_time_{}_s", "s"), range, at(&Confidence::step_time_s));
  all.part(sure_interval_of("speedup", "speedup_{}"), range, at(&Confidence::speedup), Missing::null);
  all.add({"fits_probability", "fits", "share",
           "probability that the memory of a device suffices, by the errors of published memory"},
          at(&Confidence::fits));
  all.add({"", "kind", "", "what the run is: workload, what its framework runs on, device"}, at(&Confidence::kind));
  all.add(
      {"errors_of", "errors_of", "", "the kind of run whose published figures say it: the run's own, or a wider one"},
      at(&Confidence::errors_of));
  all.add({"", "sets", "", "sets of published figures of that kind"}, at(&Confidence::sets));
  all.add({"", "figures", "", "published step times of these"}, at(&Confidence::figures));
  return all;
}

void add_confidence(RunTable& runs) {
  runs.part({.path = "confidence", .object = "How sure the run is; only where published runs say it, of GPUs"},
            confidence_figures(), of_metrics(&RunMetrics::confidence));
}

std::string_view event_name(LoaderEvent::Kind kind) {
  switch (kind) {
    case LoaderEvent::Kind::added:
      return "added";
    case LoaderEvent::Kind::removed:
      return "removed";
    case LoaderEvent::Kind::lost:
      return "lost";
    case LoaderEvent::Kind::promoted:
      return "promoted";
  }
  return "";
}

FigureTable<LoaderEvent> event_figures() {
  FigureTable<LoaderEvent> all;
  all.add({"", "what", "", "`added`, `removed`, `lost` (one died), or `promoted` (one died, a shadow took over)"},
          [](const LoaderEvent& event) { return event_name(event.kind); });
  all.add({"", "step", "", "the step that begins then, or for whose data the source works"}, at(&LoaderEvent::step));
  all.add({"", "at_s", "s", "time since the run began, in steps and waits"}, at(&LoaderEvent::at_s));
  all.add({"", "source", "", "the source"}, at(&LoaderEvent::source));
  all.add({"", "loaders", "loaders", "loaders of the source after it"}, at(&LoaderEvent::loaders));
  all.add({"", "pause_s", "", "time for which the source then prepares nothing"}, at(&LoaderEvent::pause));
  return all;
}

FigureTable<LoaderMetrics> loading_figures() {
  FigureTable<LoaderMetrics> all;
  all.part({}, loader_figures(), at(&LoaderMetrics::most));
  all.add({"loaders_lost", "lost", "loaders", "loaders that died without a shadow"}, at(&LoaderMetrics::lost));
  all.add({"shadows_promoted", "promoted", "loaders", "loaders that died and whose shadow took over"},
          at(&LoaderMetrics::promoted));
  all.list({"", "events", "", "what happened to loaders, in the order in which batches were prepared"}, event_figures(),
           at(&LoaderMetrics::events));
  return all;
}

// What only some studies ask for.
FigureTable<RunInfo::Placed> placed_figures() {
  using Placed = RunInfo::Placed;
  const auto of_spread = [](auto member) { return at(&Placed::spread, member); };
  FigureTable<Placed> all;
  all.add({"pods", "pods", "pods", "pods of the job: units of the tier that is `mesh.nodes.pod`"},
          of_spread(&PodSpread::pods));
  all.add({"data_parallel_pods_max", "data_parallel_max", "pods",
           "the most pods over which a data-parallel group is spread; 0: each is in one"},
          of_spread(&PodSpread::data_parallel_max));
  all.add({"data_parallel_pods_mean", "data_parallel_mean", "pods",
           "the same, mean over the data-parallel groups; one in a single pod counts as 0"},
          of_spread(&PodSpread::data_parallel_mean));
  all.add(
      {"pipeline_pods_max", "pipeline_max", "pods", "the most pods over which a pipeline is spread; 0: each is in one"},
      of_spread(&PodSpread::pipeline_max));
  all.add({"pipeline_pods_mean", "pipeline_mean", "pods",
           "the same, mean over the pipelines; one in a single pod counts as 0"},
          of_spread(&PodSpread::pipeline_mean));
  all.add({"pods_score", "score", "pods",
           "alpha x `data_parallel_max` + (1 - alpha) x `pipeline_max`, with `mesh.nodes.alpha`: equation 2 of Arnold"},
          at(&Placed::score));
  all.add({"", "gap", "share",
           "what the choice of `arnold` may cost above the least, in parts of that: above 0 only where its search was "
           "given up"},
          at(&Placed::gap));
  return all;
}

void add_asked_for(RunTable& runs) {
  runs.part({.path = "trace", .object = "Only where lengths come from a file of documents"}, trace_figures(),
            of_info(&RunInfo::trace));
  runs.part({.path = "placed", .object = "Only where the study states nodes, in a cluster of several pods"},
            placed_figures(), of_info(&RunInfo::placed));
  runs.part({.path = "goodput", .object = "Only where the study has failures"}, goodput_figures(),
            of_metrics(&RunMetrics::goodput));
  runs.part({.path = "loading", .object = "Only where the study names the sources of its data"}, loading_figures(),
            of_metrics(&RunMetrics::loaders));
  runs.part({.path = "uncertainty", .object = "Only where the study asks for it"}, uncertainty_figures(),
            of_metrics(&RunMetrics::uncertainty));
}

}  // namespace

const FigureTable<Run>& run_figures() {
  static const RunTable figures([](RunTable& all) {
    RunTable simulated;
    add_size(simulated);
    add_speed(simulated);
    add_capacity(simulated);
    add_memory(simulated);
    add_evidence(simulated);
    add_confidence(simulated);
    add_asked_for(simulated);
    add_what_ran(all);
    all.part({}, simulated, unless_refused, Missing::blank);
  });
  return figures;
}

const FigureTable<TraceUse>& trace_figures() {
  static const FigureTable<TraceUse> figures([](auto& all) {
    all.add({"", "documents", "documents", "documents of the file of lengths"}, at(&TraceUse::documents));
    all.add({"", "column", "", "the column of the lengths, where it was found by a usual name"}, at(&TraceUse::column));
    all.add(
        {"", "order", "", "the order in which documents are read: `shuffle`, `file`, or `steps` that the file names"},
        [](const TraceUse& use) { return order_name(use.order); });
    all.add({"", "halves_differ", "",
             "whether documents of the first half of the file are much shorter or longer than those of the second"},
            [](const TraceUse& use) { return use.halves.has_value() && use.halves->differ; });
    all.add({"trace_times_read", "times_read", "",
             "how often the steps have read the file of lengths: above 1 it began again"},
            at(&TraceUse::times_read));
    all.add({"overlong_documents", "overlong_documents", "share",
             "share of the file's documents that are longer than the context"},
            at(&TraceUse::overlong_documents));
    all.add({"overlong_tokens", "overlong_tokens", "share",
             "share of the file's tokens in documents that are longer than the context"},
            at(&TraceUse::overlong_tokens));
    all.add({"", "overlong", "", "what becomes of such documents: `split`, `truncate` or `drop`"},
            [](const TraceUse& use) { return fate_name(use.fate); });
  });
  return figures;
}

}  // namespace hdpsim
