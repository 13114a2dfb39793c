#include "sim/app/real/execution_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/atomic_file.h"
#include "sim/base/quantity_text.h"
#include "sim/compare/comparison.h"
#include "sim/compare/timeline_file.h"
#include "sim/plan/plan_file.h"
#include "sim/report/trace_events.h"

namespace hdpsim::app {
namespace {

// The mean of breakdowns that need not have the same total.
Breakdown mean_of(const std::vector<Breakdown>& ranks) {
  Breakdown mean;
  for (const Activity activity : all_activities) {
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

Duration mean_of(const std::vector<Duration>& times) {
  double seconds = 0;
  for (const Duration time : times) seconds += time.seconds() / static_cast<double>(times.size());
  return Duration::seconds(seconds);
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// One figure of all rows.
template <class Row, class Figure>
std::vector<Figure> collected(const std::vector<Row>& rows, Figure Row::*figure) {
  std::vector<Figure> figures;
  figures.reserve(rows.size());
  for (const Row& row : rows) figures.push_back(row.*figure);
  return figures;
}

std::string step_line(std::int64_t step, double loss, std::int64_t tokens, const std::string& predicted,
                      Duration measured) {
  return fmt::format("  {:>6}{:>10.5f}{:>10}{:>13}{:>13}{:>12}\n", step, loss, count_text(tokens), predicted,
                     duration_text(measured), short_number(tokens_per_second(tokens, measured)));
}

// Requires it in all rows.
template <class Row>
Duration mean_at_pace(const std::vector<Row>& rows) {
  std::vector<Duration> times;
  times.reserve(rows.size());
  for (const Row& row : rows) times.push_back(*row.at_pace);
  return mean_of(times);
}

bool is_computed(Activity activity) {
  return std::find(activities_of_kernels.begin(), activities_of_kernels.end(), activity) != activities_of_kernels.end();
}

std::string busy_machine_line(double predicted_share, const Breakdown& on_core, const Breakdown& measured) {
  const std::string text =
      busy_machine_text(predicted_share, computed_seconds({on_core}), computed_seconds({measured}));
  return text.empty() ? "" : fmt::format("  {}\n", text);
}

}  // namespace

std::string ExecutionReport::heading() {
  return fmt::format("  {:>6}{:>10}{:>10}{:>13}{:>13}{:>12}\n", "step", "loss", "tokens", "predicted", "measured",
                     "tokens/s");
}

std::string ExecutionReport::warm_up_line(std::int64_t step, double loss, std::int64_t tokens, Duration measured) {
  return step_line(step, loss, tokens, "warm-up", measured);
}

std::string ExecutionReport::add(const Program& program, const ExecutedStep& step) {
  Duration exposed;
  for (const Breakdown& rank : step.measured.ranks) exposed = std::max(exposed, rank[Activity::data_wait]);
  rows_.push_back({.step = step.step,
                   .run = step.run,
                   .loss = step.loss,
                   .tokens = step.tokens,
                   .core_share = step.core_share,
                   .predicted = step.predicted.mean(),
                   .measured = step.measured.mean(),
                   .processor = mean_of(step.processor),
                   .exposed = exposed,
                   .planning = step.planning,
                   .at_pace = step.at_pace});
  if (folder_ != nullptr) {
    write(program, step);
    table().append(csv_text([&](TableSink& sink) {
      executed_run_figures().write_cells(rows_.back(), sink);
      sink.end_row();
    }));
  }
  return step_line(step.step, step.loss, step.tokens, duration_text(step.predicted.step_time), step.measured.step_time);
}

std::filesystem::path ExecutionReport::file(const std::string& name) const {
  return folder_->file((std::filesystem::path(inner_) / name).string());
}

void ExecutionReport::write(const Program& program, const ExecutedStep& step) const {
  const Plan& plan = program.plan();
  const std::int64_t stages = program.pipeline().stages();
  const TimelineTitle measured{
      .source = "measured", .plan = plan.policy, .step = step.step, .stages = stages, .at_pace = step.at_pace};
  if (step.run == 1) {
    write_file(file(fmt::format("plan-{}.json", step.step)), plan_text(plan));
    write_file(file(fmt::format("predicted-{}.jsonl", step.step)), timeline_text({.source = "predicted",
                                                                                  .plan = plan.policy,
                                                                                  .step = step.step,
                                                                                  .core_share = step.core_share,
                                                                                  .stages = stages},
                                                                                 step.predicted));
    TraceSelection all;
    for (std::size_t rank = 0; rank < plan.schedule.size(); ++rank) all.ranks.emplace_back(rank);
    write_trace_events(file(fmt::format("trace-{}.json.gz", step.step)),
                       {{"measured", program, step.measured}, {"predicted", program, step.predicted}}, all);
  }
  const std::string run = step.run == 1 ? "" : fmt::format("-{}", step.run);
  write_file(file(fmt::format("measured-{}{}.jsonl", step.step, run)),
             timeline_text(measured, step.measured, step.processor));
}

std::vector<ExecutionReport::Row> ExecutionReport::counted() const {
  const bool warmed_up = std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.run > 1; });
  return {rows_.begin() + (rows_.size() > 1 && !warmed_up ? 1 : 0), rows_.end()};
}

GrowingFile& ExecutionReport::table() {
  if (!table_) {
    const std::filesystem::path path = file("steps.csv");
    (void)file(GrowingFile::temporary("steps.csv").string());
    table_.emplace(path, 0);
    table_->append(csv_text([](TableSink& sink) {
      executed_run_figures().write_names(sink);
      sink.end_row();
    }));
  }
  return *table_;
}

std::string ExecutionReport::finish() {
  if (folder_ != nullptr) table().finish();
  const std::vector<Row> rows = counted();
  if (rows.empty()) return "";
  const Breakdown expected = mean_of(collected(rows, &Row::predicted));
  const Breakdown found = mean_of(collected(rows, &Row::measured));
  const Breakdown computed = mean_of(collected(rows, &Row::processor));
  std::string text = fmt::format("\n  {:<16}{:>12}{:>12}{:>16}\n", "of a rank", "predicted", "measured", "on its core");
  for (const Activity activity : all_activities) {
    if (expected[activity] == Duration{} && found[activity] == Duration{}) continue;
    text +=
        fmt::format("  {:<16}{:>12}{:>12}{:>16}\n", activity_name(activity), time_or_nothing(expected[activity]),
                    time_or_nothing(found[activity]), is_computed(activity) ? time_or_nothing(computed[activity]) : "");
  }
  const Duration exposed = mean_of(collected(rows, &Row::exposed));
  const double predicted_share = mean_of(collected(rows, &Row::core_share));
  return text +
         fmt::format("  {:<16}{:>12}{:>12}\n", "step", duration_text(expected.total()), duration_text(found.total())) +
         (rows.front().at_pace ? fmt::format("  {:<16}{:>12}  with kernels as fast as they were during these runs\n",
                                             "step at pace", duration_text(mean_at_pace(rows)))
                               : "") +
         fmt::format("  plan exposed: {}, {:.3f}% of a step; planned in {} during the step before\n",
                     time_or_nothing(exposed), 100 * exposed.seconds() / found.total().seconds(),
                     duration_text(mean_of(collected(rows, &Row::planning)))) +
         "  (on its core: while the thread had a core, of what was measured; plan exposed: what a step waited for its "
         "plan)\n" +
         busy_machine_line(predicted_share, computed, found);
}

}  // namespace hdpsim::app
