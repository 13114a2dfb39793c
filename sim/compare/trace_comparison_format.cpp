#include "sim/compare/trace_comparison_format.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/base/quantity_text.h"
#include "sim/document/json.h"

namespace hdpsim {
namespace {

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
         "A rank that waits for others does so within a collective: measured messages hold waiting that the simulation "
         "tells apart.\n";
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

}  // namespace hdpsim
