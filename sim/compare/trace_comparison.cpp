#include "sim/compare/trace_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "sim/analysis/uncertainty.h"
#include "sim/base/check.h"
#include "sim/base/quantity_text.h"
#include "sim/document/json.h"
#include "sim/run/step.h"

namespace hdpsim {
namespace {

using enum DeviceActivity;
using Seconds = std::array<double, device_activities>;

constexpr std::array attention_kernels = {attention_forward, attention_backward};
constexpr std::array other_kernels = {product, memory_bound, unknown};
constexpr std::array messages = {send_recv, all_reduce, all_gather, reduce_scatter, all_to_all, other_collective};
constexpr std::array copies = {copy};
constexpr std::array waiting = {idle};
constexpr std::array attention_activities = {Activity::attention};
constexpr std::array linear_activities = {Activity::linear, Activity::optimizer};
constexpr std::array message_activities = {Activity::cp_comm, Activity::tp_comm, Activity::grad_sync};
constexpr std::array copy_activities = {Activity::offload_stall};
constexpr std::array waiting_activities = {Activity::bubble, Activity::group_wait, Activity::data_wait,
                                           Activity::overhead};

struct Row {
  const char* name;
  std::span<const DeviceActivity> measured;
  std::span<const Activity> simulated;
};
constexpr std::array<Row, 5> rows = {{{"attention", attention_kernels, attention_activities},
                                      {"products and memory-bound", other_kernels, linear_activities},
                                      {"messages", messages, message_activities},
                                      {"copies", copies, copy_activities},
                                      {"waiting and the host", waiting, waiting_activities}}};

/// The measured time of a step.
double step_of(const Recording& recording, std::int64_t steps) {
  std::vector<double> marked;
  double span = 0;
  for (const RankRecording& rank : recording.ranks) {
    marked.insert(marked.end(), rank.steps_s.begin(), rank.steps_s.end());
    span += rank.span_s;
  }
  if (!marked.empty()) return median(std::move(marked));
  return span / static_cast<double>(recording.ranks.size()) / static_cast<double>(steps);
}

/// The mean over traces of what devices do in a step of `step_s`.
Seconds seconds_of(const Recording& recording, double step_s) {
  Seconds mean{};
  for (const RankRecording& rank : recording.ranks) {
    if (!(rank.span_s > 0)) continue;
    const double share = step_s / rank.span_s / static_cast<double>(recording.ranks.size());
    for (std::size_t i = 0; i < device_activities; ++i) mean[i] += share * rank.seconds[i];
  }
  return mean;
}

ComparedActivity compared(const Row& row, const Seconds& measured, const Breakdown& simulated) {
  ComparedActivity activity;
  activity.name = row.name;
  for (const DeviceActivity kind : row.measured) {
    const double seconds = measured[static_cast<std::size_t>(kind)];
    activity.measured_s += seconds;
    if (seconds > 0) activity.kinds.push_back({std::string(device_activity_name(kind)), seconds});
  }
  for (const Activity kind : row.simulated) activity.simulated_s += simulated[kind].seconds();
  if (activity.kinds.size() < 2) activity.kinds.clear();
  return activity;
}

std::string sentence(const ComparedActivity& activity, double difference) {
  const double more = activity.measured_s - activity.simulated_s;
  constexpr double percent = 100;
  std::string text =
      fmt::format("{}: {} {} than simulated ({} against {})", activity.name, seconds_text(std::abs(more)),
                  more > 0 ? "more" : "less", seconds_text(activity.measured_s), seconds_text(activity.simulated_s));
  if (activity.simulated_s > 0) text += fmt::format(", {:.2f} times", activity.measured_s / activity.simulated_s);
  const double share = more / difference;
  constexpr double telling = 0.05;
  if (std::abs(share) >= telling && std::abs(share) <= 1 / telling) {
    text += share > 0 ? fmt::format("; that is {:.0f} % of the difference of the steps", percent * share)
                      : "; against the difference of the steps";
  }
  return text;
}

std::string row(const std::string& name, const std::string& measured, const std::string& simulated,
                const std::string& ratio) {
  return fmt::format("{:<28} {:>12} {:>12} {:>8}\n", name, measured, simulated, ratio);
}

std::string row(const std::string& name, double measured_s, double simulated_s) {
  return row(name, seconds_text(measured_s), seconds_text(simulated_s),
             simulated_s > 0 ? fmt::format("{:.2f}", measured_s / simulated_s) : "-");
}

std::string table(const TraceComparison& comparison) {
  std::string text = fmt::format(
      "plan {}, {} {}, {}\n", comparison.plan, comparison.traces, comparison.traces == 1 ? "trace" : "traces",
      comparison.marked_steps > 0 ? fmt::format("{} marked steps", comparison.marked_steps)
                                  : fmt::format("no marked steps: taken for {}", comparison.assumed_steps));
  text += row("", "measured", "simulated", "ratio");
  for (const ComparedActivity& activity : comparison.activities) {
    text += row(activity.name, activity.measured_s, activity.simulated_s);
    for (const ComparedActivity::Kind& kind : activity.kinds)
      text += row("  " + kind.name, seconds_text(kind.seconds), "", "");
  }
  text += row("step", comparison.measured_s, comparison.simulated_s) + "\n";
  for (const std::string& words : differences_in_words(comparison)) text += words + "\n";
  return text +
         "A rank that waits for others does so within a collective: measured messages include waiting, which the "
         "simulation counts apart.\n";
}

std::string csv(const TraceComparison& comparison) {
  std::string text = "activity,measured_s,simulated_s\n";
  for (const ComparedActivity& activity : comparison.activities) {
    text += fmt::format("{},{:.9g},{:.9g}\n", activity.name, activity.measured_s, activity.simulated_s);
  }
  return text + fmt::format("step,{:.9g},{:.9g}\n", comparison.measured_s, comparison.simulated_s);
}

std::string json_text(const TraceComparison& comparison) {
  Json activities = Json::array();
  for (const ComparedActivity& activity : comparison.activities) {
    Json kinds = Json::object();
    for (const ComparedActivity::Kind& kind : activity.kinds) kinds[kind.name] = kind.seconds;
    activities.push_back({{"activity", activity.name},
                          {"measured_s", activity.measured_s},
                          {"simulated_s", activity.simulated_s},
                          {"measured_kinds_s", std::move(kinds)}});
  }
  const Json all = {{"schema", "hdpsim.trace_comparison/1"},
                    {"plan", comparison.plan},
                    {"traces", comparison.traces},
                    {"marked_steps", comparison.marked_steps},
                    {"step_time_s", {{"measured", comparison.measured_s}, {"simulated", comparison.simulated_s}}},
                    {"activities", std::move(activities)},
                    {"words", differences_in_words(comparison)}};
  return json_page(all);
}

}  // namespace

TraceComparison compare_with_traces(const Recording& recording, const Breakdown& simulated,
                                    std::optional<std::int64_t> steps) {
  HDPSIM_CHECK(!recording.ranks.empty(), "a comparison with no trace");
  TraceComparison comparison;
  comparison.traces = std::ssize(recording.ranks);
  comparison.marked_steps = std::ssize(recording.ranks.front().steps_s);
  comparison.assumed_steps = std::max<std::int64_t>(1, steps.value_or(1));
  comparison.measured_s = step_of(recording, comparison.assumed_steps);
  comparison.simulated_s = simulated.total().seconds();
  const Seconds measured = seconds_of(recording, comparison.measured_s);
  for (const Row& row : rows) comparison.activities.push_back(compared(row, measured, simulated));
  return comparison;
}

std::vector<std::string> differences_in_words(const TraceComparison& comparison) {
  constexpr double least = 0.01;
  const double difference = comparison.measured_s - comparison.simulated_s;
  std::vector<std::string> words = {fmt::format(
      "The measured step takes {}, {:.2f} times the simulated one of {}.", seconds_text(comparison.measured_s),
      comparison.simulated_s > 0 ? comparison.measured_s / comparison.simulated_s : 0,
      seconds_text(comparison.simulated_s))};
  std::vector<ComparedActivity> sorted = comparison.activities;
  const auto apart = [](const ComparedActivity& a) { return std::abs(a.measured_s - a.simulated_s); };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) { return apart(a) > apart(b); });
  for (const ComparedActivity& activity : sorted) {
    if (apart(activity) >= least * comparison.measured_s) words.push_back(sentence(activity, difference));
  }
  if (words.size() == 1) words.emplace_back("No activity differs by a hundredth of the step.");
  return words;
}

std::string formatted(const TraceComparison& comparison, Format format) {
  switch (format) {
    case Format::table:
      break;
    case Format::csv:
      return csv(comparison);
    case Format::json:
      return json_text(comparison);
  }
  return table(comparison);
}

std::optional<Breakdown> mean_breakdown(const StudyPoint& point, std::size_t plan, const std::function<bool()>& stop) {
  require_simulable(point);
  const std::unique_ptr<World> world = point.make_world();
  std::array<double, activity_count> sums{};
  const std::int64_t steps = point.spec.steps;
  for (std::int64_t step = 0; step < steps; ++step) {
    if (stop()) return std::nullopt;
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

}  // namespace hdpsim
