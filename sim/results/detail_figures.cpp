#include <fmt/format.h>

#include "sim/results/run_figures.h"

namespace hdpsim {
namespace {

std::size_t stages_of(const RunRank& row) {
  return static_cast<std::size_t>(row.run->info.stages);
}

const Breakdown& breakdown_of(const RunRank& row) {
  return row.run->result.ranks[row.worker];
}

Duration busy_time_of(const RunRank& row) {
  const Breakdown& breakdown = breakdown_of(row);
  return breakdown.total() - breakdown[Activity::group_wait] - breakdown[Activity::bubble];
}

void add_phases(FigureTable<Run>& all) {
  const auto add = [&](const char* column, const std::string& what, double PhaseTimes::*phase) {
    all.add({column, "", "s", fmt::format("processor time of the simulation itself: {}", what)},
            at(&Run::metrics, &RunMetrics::phases, phase));
  };
  add("batch_s", "drawing the sequences", &PhaseTimes::batch_s);
  add("planner_s", "planning", &PhaseTimes::planner_s);
  add("check_s", "checking plans", &PhaseTimes::check_s);
  add("simulation_s", "lowering and simulating", &PhaseTimes::simulation_s);
  add("summary_s", "computing figures", &PhaseTimes::summary_s);
}

FigureTable<LoaderUse> waited_for() {
  FigureTable<LoaderUse> all;
  all.add({"waited_for", "", "", "the source or the stage of loading that the step waits for"},
          at(&LoaderUse::waited_for));
  return all;
}

}  // namespace

const FigureTable<RunStep>& step_figures() {
  static const FigureTable<RunStep> figures([](auto& all) {
    all.add({"step", "", "", "number of the step, from 0"}, through(&RunStep::step, &StepResult::step));
    all.add({"sequences", "", "sequences", "sequences of the step"}, through(&RunStep::step, &StepResult::sequences));
    all.add({"tokens", "", "tokens", "tokens of the step"}, through(&RunStep::step, &StepResult::tokens));
    all.add({"micro_batches", "", "micro-batches", "micro-batches of the step"},
            through(&RunStep::step, &StepResult::micro_batches));
    all.add({"step_time_s", "", "", "time of the step"}, through(&RunStep::step, &StepResult::time));
    all.part({}, breakdown_figures(), through(&RunStep::step, &StepResult::mean));
    all.part({}, busy_figures(), through(&RunStep::step, &StepResult::busy));
    all.part({}, peak_figures(), through(&RunStep::step, &StepResult::memory));
    all.add(events_text(), through(&RunStep::step, &StepResult::events));
    all.part({}, connection_figures(), through(&RunStep::step, &StepResult::connections));
    all.add(connection_memory_text(), through(&RunStep::step, &StepResult::memory, &MemoryUse::connections));
    all.part({}, loader_figures(), through(&RunStep::step, &StepResult::loaders));
    all.part({}, waited_for(), through(&RunStep::step, &StepResult::loaders));
  });
  return figures;
}

const FigureTable<RunRank>& rank_figures() {
  static const FigureTable<RunRank> figures([](auto& all) {
    all.add({"rank", "", "", "number of the HDP rank, from 0"},
            [](const RunRank& row) { return row.worker / stages_of(row); });
    all.add(
        {"stage", "", "", "the rank's stage of the pipeline, where there is one"},
        [](const RunRank& row) { return row.worker % stages_of(row); }, at(&RunRank::names_stage));
    all.add({"busy_s", "", "", "time in which the rank waits for no other, mean over the steps"}, busy_time_of);
    all.part({}, breakdown_figures(), breakdown_of);
  });
  return figures;
}

const FigureTable<RunLink>& link_figures() {
  static const FigureTable<RunLink> figures([](auto& all) {
    all.add({"link", "", "", "name of the link"}, through(&RunLink::link, &LinkUse::name));
    all.add({"gb_per_s", "", "GB/s", "the rate of messages between two devices on the link"},
            [](const RunLink& row) { return row.link->rate.gigabytes_per_second(); });
    all.add({"gb", "", "GB", "bytes of the main job over all steps: rings, messages between stages, collectives"},
            through(&RunLink::link, &LinkUse::bytes));
    all.add({"utilisation", "", "share", "share of the run's time for which `gb` keeps the link busy"},
            through(&RunLink::link, &LinkUse::utilisation));
    all.add({"other_gb", "", "GB", "bytes of all other jobs"}, through(&RunLink::link, &LinkUse::other_bytes));
    all.add({"other_utilisation", "", "share", "share of the run's time for which `other_gb` keeps the link busy"},
            through(&RunLink::link, &LinkUse::other_utilisation));
  });
  return figures;
}

const FigureTable<RunMemory>& memory_figures() {
  static const FigureTable<RunMemory> figures([](auto& all) {
    all.add({"step", "", "", "number of the step, from 0"},
            through(&RunMemory::run, &Run::result, &RunResult::memory, &StepMemory::step));
    all.add({"rank", "", "", "number of the HDP rank, from 0"},
            [](const RunMemory& row) { return row.rank->rank.index(); });
    all.add({"time_s", "", "", "time since the start of the step"}, through(&RunMemory::sample, &MemorySample::at));
    all.add({"device_gb", "", "", "memory of a device of the rank at that time"},
            through(&RunMemory::sample, &MemorySample::device));
    all.add({"host_gb", "", "", "memory in the device's share of the host at that time"},
            through(&RunMemory::sample, &MemorySample::host));
  });
  return figures;
}

const FigureTable<Run>& timing_figures() {
  static const FigureTable<Run> figures([](auto& all) {
    all.part(
        {}, FigureTable<Run>(add_phases), [](const Run& run) { return run.is_refused() ? nullptr : &run; },
        Missing::blank);
  });
  return figures;
}

}  // namespace hdpsim
