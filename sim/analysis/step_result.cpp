#include "sim/analysis/step_result.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hdpsim {

BusyTimes busy_times(const Timeline& timeline) {
  const std::size_t ranks = timeline.ranks.size();
  if (ranks == 0) return {};
  BusyTimes times{Duration::max(), {}, {}, {}};
  Int128 sum = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Duration busy = timeline.busy(rank);
    times.min = std::min(times.min, busy);
    times.max = std::max(times.max, busy);
    sum += busy.picoseconds();
  }
  times.mean = Duration::picoseconds(static_cast<std::int64_t>(sum / static_cast<std::int64_t>(ranks)));
  double squares = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const double distance = (timeline.busy(rank) - times.mean).seconds();
    squares += distance * distance;
  }
  times.deviation = Duration::seconds(std::sqrt(squares / static_cast<double>(ranks)));
  return times;
}

PhaseTimes& PhaseTimes::operator+=(const PhaseTimes& other) {
  batch_s += other.batch_s;
  planner_s += other.planner_s;
  check_s += other.check_s;
  simulation_s += other.simulation_s;
  summary_s += other.summary_s;
  return *this;
}

void add_data_wait(Duration wait, StepResult& step) {
  step.time += wait;
  step.mean[Activity::data_wait] += wait;
  step.memory.at += wait;
  for (Duration* busy : {&step.busy.min, &step.busy.mean, &step.busy.max}) *busy += wait;
}

void BreakdownMean::add(const Breakdown& breakdown) {
  for (const Activity activity : all_activities) sums_[index_of(activity)] += breakdown[activity].picoseconds();
  ++count_;
}

Breakdown BreakdownMean::mean() const {
  Breakdown mean;
  if (count_ == 0) return mean;
  for (const Activity activity : all_activities) {
    mean[activity] = Duration::picoseconds(static_cast<std::int64_t>(sums_[index_of(activity)] / count_));
  }
  const Int128 total = std::accumulate(sums_.begin(), sums_.end(), Int128{0}) / count_;
  const auto largest =
      all_activities[static_cast<std::size_t>(std::max_element(sums_.begin(), sums_.end()) - sums_.begin())];
  mean[largest] += Duration::picoseconds(static_cast<std::int64_t>(total)) - mean.total();
  return mean;
}

}  // namespace hdpsim
