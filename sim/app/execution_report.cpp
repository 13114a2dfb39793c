#include "sim/app/execution_report.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/quantity_text.h"
#include "sim/plan/plan_file.h"
#include "sim/report/output_file.h"
#include "sim/report/table.h"
#include "sim/report/timeline_file.h"

namespace hdpsim::app {
namespace {

// Of times that need not sum to the same.
Breakdown mean_of(const std::vector<Breakdown>& ranks) {
  Breakdown mean;
  for (std::size_t i = 0; i < activity_count; ++i) {
    const auto activity = static_cast<Activity>(i);
    double seconds = 0;
    for (const Breakdown& rank : ranks) seconds += rank[activity].seconds() / static_cast<double>(ranks.size());
    mean[activity] = Duration::seconds(seconds);
  }
  return mean;
}

double tokens_per_second(std::int64_t tokens, Duration time) {
  return static_cast<double>(tokens) / time.seconds();
}

std::string time_or_nothing(Duration time) {
  return time == Duration{} ? "-" : duration_text(time);
}

bool is_computed(Activity activity) {
  return activity == Activity::attention || activity == Activity::linear || activity == Activity::optimizer;
}

}  // namespace

std::string ExecutionReport::heading() {
  return fmt::format("  {:>6}{:>10}{:>10}{:>13}{:>13}{:>12}\n", "step", "loss", "tokens", "predicted", "measured",
                     "tokens/s");
}

std::string ExecutionReport::add(const Plan& plan, const ExecutedStep& step) {
  rows_.push_back(
      {step.step, step.loss, step.tokens, step.predicted.mean(), step.measured.mean(), mean_of(step.processor)});
  if (!folder_.empty()) {
    const auto write = [&](const char* source, const Timeline& timeline) {
      write_file(folder_ / fmt::format("{}-{}.jsonl", source, step.step),
                 timeline_text({source, plan.policy, step.step}, timeline));
    };
    write_file(folder_ / fmt::format("plan-{}.json", step.step), plan_text(plan));
    write("predicted", step.predicted);
    write("measured", step.measured);
  }
  return fmt::format("  {:>6}{:>10.5f}{:>10}{:>13}{:>13}{:>12}\n", step.step, step.loss, count_text(step.tokens),
                     duration_text(step.predicted.step_time), duration_text(step.measured.step_time),
                     short_number(tokens_per_second(step.tokens, step.measured.step_time)));
}

std::string ExecutionReport::finish() const {
  if (!folder_.empty()) write_file(folder_ / "steps.csv", csv());
  std::vector<Breakdown> predicted;
  std::vector<Breakdown> measured;
  std::vector<Breakdown> processor;
  for (std::size_t i = rows_.size() > 1 ? 1 : 0; i < rows_.size(); ++i) {
    predicted.push_back(rows_[i].predicted);
    measured.push_back(rows_[i].measured);
    processor.push_back(rows_[i].processor);
  }
  if (predicted.empty()) return "";
  const Breakdown expected = mean_of(predicted);
  const Breakdown found = mean_of(measured);
  const Breakdown computed = mean_of(processor);
  std::string text = fmt::format("\n  {:<16}{:>12}{:>12}{:>16}\n", "of a rank", "predicted", "measured", "on its core");
  for (std::size_t i = 0; i < activity_count; ++i) {
    const auto activity = static_cast<Activity>(i);
    if (expected[activity] == Duration{} && found[activity] == Duration{}) continue;
    text +=
        fmt::format("  {:<16}{:>12}{:>12}{:>16}\n", activity_name(activity), time_or_nothing(expected[activity]),
                    time_or_nothing(found[activity]), is_computed(activity) ? time_or_nothing(computed[activity]) : "");
  }
  return text +
         fmt::format("  {:<16}{:>12}{:>12}\n", "step", duration_text(expected.total()), duration_text(found.total()));
}

std::string ExecutionReport::csv() const {
  std::string text = "step,loss,tokens,predicted_s,measured_s,tokens_per_s";
  for (const char* const source : {"predicted", "measured"}) {
    for (std::size_t i = 0; i < activity_count; ++i) {
      text += fmt::format(",{}_{}_s", source, activity_name(static_cast<Activity>(i)));
    }
  }
  text += '\n';
  for (const Row& row : rows_) {
    text += fmt::format("{},{},{},{},{},{}", row.step, row.loss, row.tokens, row.predicted.total().seconds(),
                        row.measured.total().seconds(), tokens_per_second(row.tokens, row.measured.total()));
    for (const Breakdown& breakdown : {row.predicted, row.measured}) {
      for (std::size_t i = 0; i < activity_count; ++i) {
        text += fmt::format(",{}", breakdown[static_cast<Activity>(i)].seconds());
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace hdpsim::app
