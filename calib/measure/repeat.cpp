#include "calib/measure/repeat.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "calib/measure/summary.h"

namespace hdpsim::calib {
namespace {

constexpr int warm_up_runs = 3;
constexpr int cold_warm_up_runs = 1;  // touches memory for the first time; no cache has to be filled
constexpr double longest_warm_up_s = 0.1;
constexpr double batch_s = 0.02;  // short enough to react to a stop and to throttling
constexpr int largest_batch = 200;
constexpr int most_throttled_batches = 40;
constexpr std::chrono::milliseconds cooling{50};  // nvbench pauses as long
constexpr std::size_t runs_to_judge = 10;

double sum_of(std::span<const double> seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

/// Returns a rough time of one run.
double warm_up(const Repeatable& work) {
  double last = 0;
  double total = 0;
  const int runs = work.between_s > 0 ? cold_warm_up_runs : warm_up_runs;
  for (int run = 0; run < runs && total < longest_warm_up_s; ++run) {
    last = sum_of(work.time(1));
    total += last + work.between_s;
  }
  return last;
}

int batch_size(double run_s) {
  return std::clamp(static_cast<int>(batch_s / std::max(run_s, 1e-9)), 1, largest_batch);
}

bool mostly_impossible(const Repetition& result, std::size_t kept) {
  return kept + static_cast<std::size_t>(result.impossible) >= runs_to_judge &&
         static_cast<std::size_t>(result.impossible) > kept;
}

}  // namespace

bool StoppingRule::enough(std::span<const double> seconds, double between_s) const {
  const auto runs = static_cast<int>(seconds.size());
  if (runs >= limits.most_runs) return true;
  const double total = sum_of(seconds) + static_cast<double>(runs) * between_s;
  if (total >= limits.most_s) return runs >= limits.least_long_runs;
  return runs >= limits.least_runs && total >= limits.least_s && noise_of_median(seconds) <= noise;
}

Repetition repeat(const Repeatable& work, const StoppingRule& rule, const std::function<bool()>& stop) {
  Repetition result;
  if (stop()) return result;
  const int runs = batch_size(warm_up(work) + work.between_s);
  std::vector<double> kept;
  std::vector<double> emptying;
  int throttled_batches = 0;
  while (!rule.enough(kept, work.between_s)) {
    if (stop()) return result;
    const std::vector<double> batch = work.time(runs);
    const kernels::DeviceState state = work.state();
    if (state.throttled) {
      result.throttled += static_cast<std::int64_t>(batch.size());
      if (++throttled_batches == most_throttled_batches) {
        result.refusal = fmt::format("the device throttled during {} batches in a row", throttled_batches);
        return result;
      }
      std::this_thread::sleep_for(cooling);
      continue;
    }
    throttled_batches = 0;
    if (state.emptying_s) emptying.push_back(*state.emptying_s);
    for (const double seconds : batch) {
      if (seconds > 0 && seconds >= work.least_possible_s) {
        kept.push_back(seconds);
      } else {
        ++result.impossible;
      }
    }
    if (mostly_impossible(result, kept.size())) {
      result.refusal = fmt::format("{} of {} runs were faster than the physical peak of the device allows ({:.3g} s)",
                                   result.impossible, result.impossible + static_cast<std::int64_t>(kept.size()),
                                   work.least_possible_s);
      return result;
    }
  }
  result.timing = summary(kept);
  if (!emptying.empty()) result.emptying_s = summary(emptying).median_s;
  return result;
}

}  // namespace hdpsim::calib
