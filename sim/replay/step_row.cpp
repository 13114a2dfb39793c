#include "sim/replay/step_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/analysis/metrics.h"

namespace hdpsim {
namespace {

// Visits all numbers of a row after its step and plan, in the order of the file: only this function knows the order.
template <class Row, class Visit>
void visit_numbers(Row& row, const Visit& visit) {
  visit(row.batch.sequences);
  visit(row.batch.tokens);
  visit(row.batch.longest);
  visit(row.batch.weighted_length);
  visit(row.micro_batches);
  visit(row.time_s);
  for (auto& seconds : row.breakdown_s) visit(seconds);
  visit(row.busy_min_s);
  visit(row.busy_mean_s);
  visit(row.busy_max_s);
  visit(row.device_gb);
  visit(row.host_gb);
}

struct Numbers {
  TableSink& sink;
  void operator()(std::int64_t count) const { sink.count(count); }
  void operator()(double number) const { sink.number(number); }
};

template <class Number>
bool take_number(std::string_view& text, Number& number) {
  if (!text.starts_with(',')) return false;
  text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc{};
}

}  // namespace

BatchFigures figures_of(const Batch& batch) {
  BatchFigures figures;
  double squares = 0;
  for (const Sequence& sequence : batch.sequences) {
    const auto tokens = static_cast<double>(sequence.tokens);
    figures.tokens += sequence.tokens;
    figures.longest = std::max(figures.longest, sequence.tokens);
    squares += tokens * tokens;
  }
  figures.sequences = std::ssize(batch.sequences);
  if (figures.tokens > 0) figures.weighted_length = squares / static_cast<double>(figures.tokens);
  return figures;
}

StepRow row_of(const StepResult& result, const BatchFigures& batch, std::size_t plan) {
  StepRow row;
  row.step = result.step;
  row.plan = plan;
  row.batch = batch;
  row.micro_batches = result.micro_batches;
  row.time_s = seconds_of(result.time);
  row.busy_min_s = seconds_of(result.busy.min);
  row.busy_mean_s = seconds_of(result.busy.mean);
  row.busy_max_s = seconds_of(result.busy.max);
  row.device_gb = result.memory.device.gigabytes();
  row.host_gb = result.memory.host.gigabytes();
  for (const Activity activity : all_activities) {
    row.breakdown_s[index_of(activity)] = seconds_of(result.mean[activity]);
  }
  return row;
}

void StepTable::write_header(TableSink& sink) {
  for (const char* name :
       {"step", "plan", "sequences", "tokens", "longest", "weighted_length", "micro_batches", "step_time_s"}) {
    sink.text(name);
  }
  for (const Activity activity : all_activities) {
    sink.text(fmt::format("{}_s", activity_name(activity)));
  }
  for (const char* name : {"busy_min_s", "busy_mean_s", "busy_max_s", "device_peak_gb", "host_peak_gb"}) {
    sink.text(name);
  }
  sink.end_row();
}

void StepTable::write(const StepRow& row, TableSink& sink) const {
  sink.count(row.step);
  sink.text(plans_.at(row.plan));
  visit_numbers(row, Numbers{sink});
  sink.end_row();
}

std::string StepTable::line(const StepRow& row) const {
  return csv_text([&](TableSink& sink) { write(row, sink); });
}

std::optional<StepRow> StepTable::parse(std::string_view line, std::int64_t step, std::size_t plan) const {
  const std::string key = fmt::format("{},{}", step, csv_field(plans_.at(plan)));
  if (!line.starts_with(key)) return std::nullopt;
  line.remove_prefix(key.size());
  StepRow row;
  row.step = step;
  row.plan = plan;
  bool good = true;
  visit_numbers(row, [&](auto& number) { good = good && take_number(line, number); });
  if (!good || !line.empty()) return std::nullopt;
  return row;
}

}  // namespace hdpsim
