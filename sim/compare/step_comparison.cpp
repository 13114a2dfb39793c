#include "sim/compare/step_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "sim/analysis/uncertainty.h"
#include "sim/base/check.h"
#include "sim/base/diagnostic.h"
#include "sim/base/duration_sum.h"
#include "sim/compare/instruction_records.h"

namespace hdpsim {
namespace {

// The records of one worker among those of all, by id.
std::span<const InstructionRecord> records_of(std::size_t worker, const std::vector<InstructionRecord>& records,
                                              std::int64_t stages) {
  const auto worker_of = [=](const InstructionRecord& record) {
    return record.rank.index() * static_cast<std::size_t>(stages) + record.stage;
  };
  const auto first = std::partition_point(records.begin(), records.end(),
                                          [&](const InstructionRecord& r) { return worker_of(r) < worker; });
  const auto last =
      std::partition_point(first, records.end(), [&](const InstructionRecord& r) { return worker_of(r) == worker; });
  return {first, last};
}

void require_title(const std::string& file, const TimelineTitle& title, const std::string& source,
                   Diagnostics& diagnostics) {
  if (title.source == source) return;
  diagnostics.error({file, 0, 0}, fmt::format("this timeline is {}, not {}", title.source, source),
                    "the prediction comes first, then what was measured");
}

template <class T>
void require_same(const std::string& file, const char* what, const T& measured, const T& predicted,
                  Diagnostics& diagnostics) {
  if (measured == predicted) return;
  diagnostics.error({file, 0, 0}, fmt::format("its {} is {}, that of the prediction {}", what, measured, predicted));
}

}  // namespace

StepComparison::StepComparison(std::string file, TimelineFile predicted)
    : file_(std::move(file)), title_(predicted.title) {
  Diagnostics diagnostics;
  require_title(file_, title_, "predicted", diagnostics);
  if (predicted.timeline.instructions.empty()) diagnostics.error({file_, 0, 0}, "this timeline has no instructions");
  diagnostics.throw_if_any();
  sort_by_id(predicted.timeline.instructions);
  predicted_ = summary(predicted);
  predicted_.on_core_s = computed_seconds(predicted.timeline.ranks) * title_.core_share;
  instructions_ = std::move(predicted.timeline.instructions);
  for_each_family(instructions_, [&](const auto&, std::size_t family) { ++family_instructions_.at(family); });
}

// Requires instructions sorted by id.
StepComparison::Summary StepComparison::summary(const TimelineFile& file) const {
  const Timeline& timeline = file.timeline;
  Summary summary;
  summary.step_time_s = timeline.step_time.seconds();
  if (!file.processor.empty()) summary.on_core_s = computed_seconds(file.processor);
  if (file.title.at_pace) summary.at_pace_s = file.title.at_pace->seconds();
  std::array<DurationSum, instruction_families> families;
  for_each_family(timeline.instructions, [&](const InstructionRecord& record, std::size_t family) {
    families.at(family) += record.end - record.begin;
  });
  for (std::size_t i = 0; i < instruction_families; ++i) summary.family_s[i] = families[i].seconds();
  for (std::size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const auto [exchange_s, hidden_s] = exchange_overlap(records_of(rank, timeline.instructions, title_.stages));
    summary.ranks.push_back({timeline.busy(rank).seconds(), exchange_s, hidden_s});
  }
  const Breakdown mean = timeline.mean();
  for (const Activity activity : all_activities) {
    summary.activity_s[index_of(activity)] = mean[activity].seconds();
  }
  return summary;
}

void StepComparison::add(const std::string& file, TimelineFile measured) {
  Diagnostics diagnostics;
  require_title(file, measured.title, "measured", diagnostics);
  require_same(file, "plan", measured.title.plan, title_.plan, diagnostics);
  require_same(file, "step", measured.title.step, title_.step, diagnostics);
  require_same(file, "number of stages", measured.title.stages, title_.stages, diagnostics);
  require_same(file, "number of ranks", measured.timeline.ranks.size(), predicted_.ranks.size(), diagnostics);
  diagnostics.throw_if_any();
  sort_by_id(measured.timeline.instructions);
  require_same_instructions({file_, instructions_}, {file, measured.timeline.instructions});
  measured_.push_back(summary(measured));
}

template <class Figure>
std::vector<double> StepComparison::measured(const Figure& figure) const {
  std::vector<double> values;
  for (const Summary& run : measured_) values.push_back(figure(run));
  return values;
}

template <class Figure>
Pair StepComparison::pair(const Figure& figure) const {
  return {figure(predicted_), median(measured(figure))};
}

bool StepComparison::every_run_knows(std::optional<double> Summary::*figure) const {
  return std::all_of(measured_.begin(), measured_.end(), [=](const Summary& run) { return (run.*figure).has_value(); });
}

std::optional<double> StepComparison::noise_floor() const {
  if (measured_.size() < 2) return std::nullopt;
  std::array<std::vector<double>, 2> halves;
  for (std::size_t i = 0; i < measured_.size(); ++i) halves[i % 2].push_back(measured_[i].step_time_s);
  return std::abs(median(halves[0]) - median(halves[1]));
}

std::vector<FamilyComparison> StepComparison::families() const {
  std::vector<FamilyComparison> families;
  for (std::size_t i = 0; i < instruction_families; ++i) {
    if (family_instructions_[i] == 0) continue;
    families.push_back(
        {instruction_family_name(i), family_instructions_[i], pair([i](const Summary& s) { return s.family_s[i]; })});
  }
  sort_by_difference(families);
  return families;
}

std::vector<RankComparison> StepComparison::ranks() const {
  std::vector<RankComparison> ranks;
  for (std::size_t rank = 0; rank < predicted_.ranks.size(); ++rank) {
    const auto pair_of = [&](double RankTimes::*time) {
      return pair([=](const Summary& s) { return s.ranks[rank].*time; });
    };
    ranks.push_back({pair_of(&RankTimes::busy_s), pair_of(&RankTimes::exchange_s), pair_of(&RankTimes::hidden_s)});
  }
  return ranks;
}

Comparison StepComparison::result() const {
  HDPSIM_CHECK(!measured_.empty(), "step {} was not measured", title_.step);
  Comparison result{.plan = title_.plan,
                    .steps = {title_.step},
                    .runs = measured_.size(),
                    .step_time_s = pair([](const Summary& s) { return s.step_time_s; }),
                    .noise_floor_s = noise_floor(),
                    .core_share = title_.core_share,
                    .on_core_s = {},
                    .families = families(),
                    .stages = title_.stages,
                    .ranks = ranks()};
  if (every_run_knows(&Summary::on_core_s)) {
    result.on_core_s = pair([](const Summary& s) { return *s.on_core_s; });
  }
  if (every_run_knows(&Summary::at_pace_s)) {
    const double predicted = median(measured([](const Summary& s) { return *s.at_pace_s; }));
    result.at_pace_s = Pair{predicted, result.step_time_s.measured};
  }
  for (std::size_t i = 0; i < activity_count; ++i) {
    result.activities_s[i] = pair([i](const Summary& s) { return s.activity_s[i]; });
  }
  return result;
}

}  // namespace hdpsim
