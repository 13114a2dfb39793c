#include "sim/app/compare_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/compare/trace_comparison.h"
#include "sim/profiler/recording.h"
#include "sim/run/step.h"

namespace hdpsim::app {
namespace {

namespace fs = std::filesystem;

bool is_study(const std::string& path) {
  const fs::path extension = fs::path(path).extension();
  return extension == ".yaml" || extension == ".yml";
}

std::size_t plan_of(const Study& study, const std::string& name) {
  if (name.empty()) return 0;
  std::vector<std::string> names;
  for (const StudyPlan& plan : study.plans) names.push_back(plan.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw InputError(fmt::format("the study has no plan '{}'", name), suggestion(name, names));
  return static_cast<std::size_t>(found - names.begin());
}

/// The mean over steps and ranks. Empty if a signal stopped it.
std::optional<Breakdown> simulated(const StudyPoint& point, std::size_t plan) {
  require_simulable(point);
  const std::unique_ptr<World> world = point.make_world();
  std::array<double, activity_count> sums{};
  const std::int64_t steps = point.spec.steps;
  for (std::int64_t step = 0; step < steps; ++step) {
    if (stop_signal() != 0) return std::nullopt;
    const SimulatedStep result = simulate_step(point, plan, step, *world);
    for (const Breakdown& rank : result.ranks) {
      for (const Activity activity : all_activities) {
        sums[index_of(activity)] += rank[activity].seconds() / static_cast<double>(result.ranks.size());
      }
    }
  }
  Breakdown mean;
  for (const Activity activity : all_activities) {
    mean[activity] = Duration::seconds(sums[index_of(activity)] / static_cast<double>(steps));
  }
  return mean;
}

Recording read_traces(const std::vector<std::string>& paths, const StudyPoint& point) {
  RecordingOptions reading;
  reading.gpus_per_node = point.spec.cluster.devices_per_node;
  ProgressDisplay display;
  reading.report = [&display](double share) { display.show(ReadingProgress{share}); };
  return read_recording({paths.begin(), paths.end() - 1}, reading);
}

}  // namespace

std::vector<std::string> traces_and_study(std::vector<std::string> paths) {
  std::stable_partition(paths.begin(), paths.end(), [](const std::string& path) { return !is_study(path); });
  const bool one_study = paths.size() >= 2 && is_study(paths.back()) && !is_study(paths[paths.size() - 2]);
  return one_study ? paths : std::vector<std::string>{};
}

void add_compare_trace(Command command, CompareTraceOptions& options) {
  command.add_option("--plan", options.plan, "For a trace: the plan of the study (default: its first)")
      .type_name("PLAN");
  add_count(command, "--trace-steps", options.trace_steps,
            "For a trace in which no steps are marked: how many it holds (default: 1)");
  add_set(command, options.set, "the study");
}

int compare_trace(const std::vector<std::string>& paths, const CompareTraceOptions& options, Format format,
                  const Session& session) {
  Catalog catalog(session.data_folder);
  const Study study = load_study(paths.back(), options.set, catalog);
  const std::size_t plan = plan_of(study, options.plan);
  if (study.points.size() > 1) {
    note(fmt::format("the study has {} points: compared is the first; --set chooses", study.points.size()));
  }
  const StudyPoint& point = study.points.front();
  const Recording recording = read_traces(paths, point);
  catch_stop_signals();
  const std::optional<Breakdown> breakdown = simulated(point, plan);
  if (!breakdown) return exit_by_signal + stop_signal();
  TraceComparison comparison = compare_with_traces(
      recording, *breakdown, options.trace_steps > 0 ? std::optional(options.trace_steps) : std::nullopt);
  comparison.plan = study.plans[plan].name;
  print(formatted(comparison, format), format);
  return 0;
}

}  // namespace hdpsim::app
