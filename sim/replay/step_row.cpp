#include "sim/replay/step_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/analysis/memory_verdict.h"
#include "sim/analysis/metrics.h"
#include "sim/results/run_figures.h"

namespace hdpsim {
namespace {

const std::string& column_of(Activity activity) {
  static const auto names = [] {
    std::array<std::string, activity_count> all;
    for (const Activity each : all_activities) all[index_of(each)] = fmt::format("{}_s", activity_name(each));
    return all;
  }();
  return names[index_of(activity)];
}

// Visits the columns after step and plan, each with its member, in the order of the file: it is written, kept and
// explained from this.
template <class Visit>
void visit_columns(const Visit& visit) {
  visit("sequences", at(&StepRow::batch, &BatchFigures::sequences));
  visit("tokens", at(&StepRow::batch, &BatchFigures::tokens));
  visit("longest", at(&StepRow::batch, &BatchFigures::longest));
  visit("weighted_length", at(&StepRow::batch, &BatchFigures::weighted_length));
  visit("micro_batches", at(&StepRow::micro_batches));
  visit("step_time_s", at(&StepRow::time_s));
  for (const Activity activity : all_activities) {
    visit(
        column_of(activity), [activity](auto& row) -> auto& { return row.breakdown_s[index_of(activity)]; });
  }
  visit("busy_min_s", at(&StepRow::busy_min_s));
  visit("busy_mean_s", at(&StepRow::busy_mean_s));
  visit("busy_max_s", at(&StepRow::busy_max_s));
  visit("device_peak_gb", at(&StepRow::device_gb));
  visit("host_peak_gb", at(&StepRow::host_gb));
  visit("device_at_most_gb", at(&StepRow::device_at_most_gb));
}

// A column that the steps of a study have too means the same here.
FigureText text_of(std::string_view column, const std::vector<FigureText>& of_study) {
  const auto same = [&](const FigureText& text) { return text.column == column; };
  const auto found = std::find_if(of_study.begin(), of_study.end(), same);
  FigureText text = found != of_study.end() ? *found : column == "longest" ? longest_text() : weighted_length_text();
  text.path.clear();
  return text;
}

}  // namespace

FigureText longest_text() {
  return {"longest", "longest", "tokens", "the longest sequence"};
}

FigureText weighted_length_text() {
  return {"weighted_length", "weighted_length", "tokens",
          "mean length of a token's sequence: sum of s^2 over sum of s"};
}

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
  row.device_at_most_gb = with_largest_gaps(result.memory).gigabytes();
  for (const Activity activity : all_activities) {
    row.breakdown_s[index_of(activity)] = seconds_of(result.mean[activity]);
  }
  return row;
}

const FigureTable<StepRow>& StepTable::figures() {
  static const auto figures = [] {
    const std::vector<FigureText> of_study = step_figures().texts();
    FigureTable<StepRow> all;
    visit_columns([&](std::string_view column, auto member) { all.add(text_of(column, of_study), member); });
    return all;
  }();
  return figures;
}

void StepTable::write_header(TableSink& sink) {
  for (const char* name : {"step", "plan"}) sink.text(name);
  figures().write_names(sink);
  sink.end_row();
}

void StepTable::write(const StepRow& row, TableSink& sink) const {
  sink.count(row.step);
  sink.text(plans_.at(row.plan));
  figures().write_cells(row, sink);
  sink.end_row();
}

std::string StepTable::line(const StepRow& row) const {
  return csv_text([&](TableSink& sink) { write(row, sink); });
}

void to_json(Json& json, const StepRow& row) {
  json = Json::array();
  visit_columns([&](const auto&, auto member) { json.push_back(member(row)); });
}

void from_json(const Json& json, StepRow& row) {
  std::size_t at = 0;
  visit_columns([&](const auto&, auto member) { json.at(at++).get_to(member(row)); });
}

}  // namespace hdpsim
