#include "sim/profiler/step_trace.h"

#include <algorithm>
#include <utility>

#include "sim/profiler/impl/range_trace.h"
#include "sim/profiler/impl/rank_trace.h"
#include "sim/profiler/impl/work_times.h"

namespace hdpsim {
namespace {

/// A stretch of a trace, in microseconds.
struct Window {
  double begin = 0;
  double end = 0;
};

/// A pass and its time.
struct PassWindow {
  std::int64_t micro_batch = 0;
  bool is_forward = true;
  Window window;
};

/// A step as the host has marked it.
struct StepRange {
  std::int64_t step = 0;
  Window window;
  bool has_optimizer = false;
};

// The steps by their own ranges; where there are none, from the first range of a number to its last.
std::vector<StepRange> steps_of(const std::vector<MarkedRange>& ranges) {
  std::vector<StepRange> steps;
  for (const MarkedRange& range : ranges) {
    if (range.name.kind == TrainingRange::Kind::step) steps.push_back({range.name.step, {range.begin, range.end}});
  }
  if (!steps.empty()) return steps;
  for (const MarkedRange& range : ranges) {
    if (range.name.step < 0) continue;
    if (steps.empty() || steps.back().step != range.name.step) {
      steps.push_back({range.name.step, {range.begin, range.end}});
    }
    steps.back().window.end = std::max(steps.back().window.end, range.end);
  }
  return steps;
}

// An optimizer that runs behind a step, before the next one, is part of it.
void add_optimizers(const std::vector<MarkedRange>& ranges, std::vector<StepRange>& steps) {
  for (const MarkedRange& range : ranges) {
    if (range.name.kind != TrainingRange::Kind::optimizer) continue;
    const auto behind = std::find_if(steps.rbegin(), steps.rend(),
                                     [&](const StepRange& step) { return step.window.begin <= range.begin; });
    if (behind == steps.rend()) continue;
    behind->window.end = std::max(behind->window.end, range.end);
    behind->has_optimizer = true;
  }
}

class StepAnalysis {
 public:
  StepAnalysis(const RangeTrace& trace, StepTrace& result)
      : trace_(trace), result_(result), times_(trace.work()), steps_(steps_of(trace.ranges())) {
    add_optimizers(trace.ranges(), steps_);
  }

  void run() {
    result_.is_of_host = trace_.is_of_host();
    result_.work = trace_.work_count();
    const std::vector<PassWindow> passes = result_.is_of_host ? passes_of_host() : passes_of_device();
    double free = -1e300;
    for (StepRange& step : steps_) {
      if (!result_.is_of_host) extend_to_kernels(step);
      step.window.begin = std::max(step.window.begin, free);
      step.window.end = std::max(step.window.end, step.window.begin);
      free = step.window.end;
      add(step, passes);
    }
  }

 private:
  [[nodiscard]] std::vector<PassWindow> passes_of_host() const {
    std::vector<PassWindow> passes;
    for (const MarkedRange& range : trace_.ranges()) {
      if (range.name.is_pass()) {
        passes.push_back(
            {range.name.micro_batch, range.name.kind == TrainingRange::Kind::forward, {range.begin, range.end}});
      }
    }
    return passes;
  }

  // From the first to the last kernel or message of each pass. Copies come early or late on purpose.
  [[nodiscard]] std::vector<PassWindow> passes_of_device() {
    std::vector<std::optional<Window>> windows(trace_.ranges().size());
    for (const DeviceWork& kernel : trace_.kernels()) {
      const auto range = trace_.pass_of(kernel);
      if (!range) {
        if (!trace_.launch_of(kernel)) ++result_.outside;
        continue;
      }
      if (kernel.work.activity == DeviceActivity::copy) continue;
      std::optional<Window>& window = windows.at(*range);
      if (!window) window = Window{kernel.work.begin, kernel.work.end};
      window = Window{std::min(window->begin, kernel.work.begin), std::max(window->end, kernel.work.end)};
    }
    std::vector<PassWindow> passes;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const TrainingRange& name = trace_.ranges()[i].name;
      if (windows[i]) passes.push_back({name.micro_batch, name.kind == TrainingRange::Kind::forward, *windows[i]});
    }
    std::stable_sort(passes.begin(), passes.end(),
                     [](const PassWindow& a, const PassWindow& b) { return a.window.begin < b.window.begin; });
    return passes;
  }

  // The device ends after the host has launched its work.
  void extend_to_kernels(StepRange& step) const {
    const Window host = step.window;
    for (const DeviceWork& kernel : trace_.kernels()) {
      const auto launch = trace_.launch_of(kernel);
      if (launch && host.begin <= *launch && *launch < host.end) {
        step.window.end = std::max(step.window.end, kernel.work.end);
      }
    }
  }

  void add(const StepRange& step, const std::vector<PassWindow>& passes) {
    const auto [begin, end] = step.window;
    StepOfTrace traced{.step = step.step,
                       .seconds_in_all = us * (end - begin),
                       .seconds = times_.between(begin, end),
                       .has_optimizer = step.has_optimizer,
                       .passes = {}};
    double free = begin;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      Window own = passes[i].window;
      if (own.begin < begin || own.begin >= end) continue;
      own.begin = std::max(own.begin, free);
      own.end = std::min(own.end, end);
      if (i + 1 < passes.size()) own.end = std::min(own.end, std::max(own.begin, passes[i + 1].window.begin));
      own.end = std::max(own.end, own.begin);
      free = own.end;
      traced.passes.push_back({.micro_batch = passes[i].micro_batch,
                               .is_forward = passes[i].is_forward,
                               .begin_s = us * (own.begin - begin),
                               .end_s = us * (own.end - begin),
                               .seconds = times_.between(own.begin, own.end)});
    }
    result_.steps.push_back(std::move(traced));
  }

  const RangeTrace& trace_;
  StepTrace& result_;
  WorkTimes times_;
  std::vector<StepRange> steps_;
};

}  // namespace

StepTrace read_step_trace(const std::filesystem::path& file, const ReportShare& report) {
  RangeTrace trace;
  StepTrace result;
  result.file = file.string();
  const ProfilerHeader header = read_kineto(
      file, [&](const ProfilerEvent& event) { trace.add(event); }, report);
  trace.finish();
  result.rank = trace.rank() ? trace.rank() : header.rank;
  StepAnalysis(trace, result).run();
  return result;
}

}  // namespace hdpsim
