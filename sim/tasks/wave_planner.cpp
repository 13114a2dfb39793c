#include "sim/tasks/wave_planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr int bisections = 200;  // until the bounds are neighbours among doubles
constexpr double rounding = 1e-9;
// How much of the best use of devices an end must have: what is best depends on what is left behind it.
constexpr double uses_kept[] = {1, 0.95, 0.8, 0.5};

double devices_needed(const OperatorRun& run, double seconds) {
  const double speed = static_cast<double>(run.operators) / seconds;
  return run.curve.devices_for(std::min(speed, run.curve.most_speed()));
}

double devices_needed(const std::vector<OperatorRun>& runs, double seconds) {
  double sum = 0;
  for (const OperatorRun& run : runs) sum += devices_needed(run, seconds);
  return sum;
}

// The time of the slowest run alone.
double least_seconds(const std::vector<OperatorRun>& runs) {
  double least = 0;
  for (const OperatorRun& run : runs) {
    least = std::max(least, static_cast<double>(run.operators) / run.curve.most_speed());
  }
  return least;
}

/// Makes the waves of a level.
class WaveMaker {
 public:
  WaveMaker(const std::vector<OperatorRun>& runs, std::vector<RunPart> parts, std::int64_t devices, double use_kept)
      : runs_(runs), rest_(std::move(parts)), devices_(devices), use_kept_(use_kept) {}

  std::vector<Wave> make() {
    std::vector<Wave> waves;
    while (!rest_.empty()) waves.push_back(next());
    return waves;
  }

 private:
  [[nodiscard]] double each(const RunPart& part) const { return runs_[part.run].curve.seconds(part.devices); }
  [[nodiscard]] double seconds(const RunPart& part) const { return static_cast<double>(part.operators) * each(part); }

  Wave next() {
    const std::vector<std::size_t> chosen = fullest();
    std::vector<RunPart> parts;
    for (const std::size_t index : chosen) parts.push_back(rest_[index]);
    widen(parts);
    const Wave wave = best_end(parts);
    for (std::size_t i = 0; i < parts.size(); ++i) rest_[chosen[i]].operators -= wave.parts[i].operators;
    std::erase_if(rest_, [](const RunPart& part) { return part.operators == 0; });
    return wave;
  }

  // Among the ends with which devices compute that much of the time that they do with the best one, the last.
  [[nodiscard]] Wave best_end(const std::vector<RunPart>& parts) const {
    std::vector<Wave> waves;
    double most = 0;
    for (const RunPart& part : parts) {
      waves.push_back(ending_with(part, parts));
      most = std::max(most, use(waves.back()));
    }
    std::erase_if(waves, [&](const Wave& wave) { return use(wave) < use_kept_ * most * (1 - rounding); });
    return *std::max_element(waves.begin(), waves.end(),
                             [](const Wave& one, const Wave& other) { return one.seconds < other.seconds; });
  }

  // As many operators of each part as fit into the time of one of them.
  [[nodiscard]] Wave ending_with(const RunPart& last, std::vector<RunPart> parts) const {
    Wave wave{std::move(parts), 0};
    for (RunPart& part : wave.parts) {
      const auto fitting = static_cast<std::int64_t>(std::floor(seconds(last) / each(part) + rounding));
      part.operators = std::clamp<std::int64_t>(fitting, 1, part.operators);
      wave.seconds = std::max(wave.seconds, seconds(part));
    }
    return wave;
  }

  // Devices that compute in the mean.
  [[nodiscard]] double use(const Wave& wave) const {
    double busy = 0;
    for (const RunPart& part : wave.parts) busy += seconds(part) * static_cast<double>(part.devices);
    return busy / wave.seconds;
  }

  /// What a choice of parts fills, and how long its parts have left.
  struct Filled {
    std::int64_t devices = 0;
    double seconds = 0;
    std::vector<std::size_t> parts{};

    [[nodiscard]] bool is_below(const Filled& other) const {
      return std::pair(devices, seconds) < std::pair(other.devices, other.seconds);
    }
  };

  // Run after run, the best choice for every number of devices that is filled exactly: a knapsack.
  [[nodiscard]] std::vector<std::size_t> fullest() const {
    std::vector<std::optional<Filled>> best(static_cast<std::size_t>(devices_) + 1);
    best[0] = Filled{};
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      std::vector<std::optional<Filled>> with = best;
      for (std::size_t i = 0; i < rest_.size(); ++i) {
        if (rest_[i].run == run) add(i, best, with);
      }
      best = std::move(with);
    }
    const auto last = std::find_if(best.rbegin(), best.rend(), [](const auto& choice) { return choice.has_value(); });
    return (*last)->parts;
  }

  void add(std::size_t index, const std::vector<std::optional<Filled>>& without,
           std::vector<std::optional<Filled>>& with) const {
    const RunPart& part = rest_[index];
    for (std::size_t filled = 0; filled + static_cast<std::size_t>(part.devices) < with.size(); ++filled) {
      if (!without[filled]) continue;
      Filled more{without[filled]->devices + part.devices, without[filled]->seconds + seconds(part),
                  without[filled]->parts};
      more.parts.push_back(index);
      auto& place = with[static_cast<std::size_t>(more.devices)];
      if (!place || place->is_below(more)) place = std::move(more);
    }
  }

  void widen(std::vector<RunPart>& parts) const {
    std::int64_t left = devices_;
    for (const RunPart& part : parts) left -= part.devices;
    while (left > 0) {
      RunPart* longest = nullptr;
      for (RunPart& part : parts) {
        const auto wider = next_point(part);
        if (wider && *wider - part.devices <= left && (longest == nullptr || seconds(part) > seconds(*longest))) {
          longest = &part;
        }
      }
      if (longest == nullptr) return;
      const std::int64_t wider = *next_point(*longest);
      left -= wider - longest->devices;
      longest->devices = wider;
    }
  }

  [[nodiscard]] std::optional<std::int64_t> next_point(const RunPart& part) const {
    for (const ScalingPoint& point : runs_[part.run].curve.points()) {
      if (point.devices > part.devices) return point.devices;
    }
    return std::nullopt;
  }

  const std::vector<OperatorRun>& runs_;
  std::vector<RunPart> rest_;
  std::int64_t devices_;
  double use_kept_;
};

// All operators of each run on the point nearest to its optimum.
std::vector<RunPart> nearest_parts(const std::vector<OperatorRun>& runs, const LevelOptimum& optimum) {
  std::vector<RunPart> parts;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const std::vector<ScalingPoint>& points = runs[run].curve.points();
    const double wanted = optimum.devices[run];
    std::size_t nearest = runs[run].curve.point_from(wanted);
    if (nearest > 0 && 2 * wanted < static_cast<double>(points[nearest - 1].devices + points[nearest].devices))
      --nearest;
    parts.push_back({run, points[nearest].devices, runs[run].operators});
  }
  return parts;
}

double seconds_together(const std::vector<Wave>& waves) {
  double sum = 0;
  for (const Wave& wave : waves) sum += wave.seconds;
  return sum;
}

}  // namespace

LevelOptimum level_optimum(const std::vector<OperatorRun>& runs, std::int64_t devices) {
  LevelOptimum optimum;
  double shortest = least_seconds(runs);
  double longest = shortest;
  const auto most = static_cast<double>(devices);
  while (devices_needed(runs, longest) > most) longest *= 2;
  for (int i = 0; i < bisections && devices_needed(runs, shortest) > most; ++i) {
    const double middle = (shortest + longest) / 2;
    if (middle == shortest || middle == longest) break;
    (devices_needed(runs, middle) > most ? shortest : longest) = middle;
  }
  optimum.seconds = devices_needed(runs, shortest) > most ? longest : shortest;
  for (const OperatorRun& run : runs) optimum.devices.push_back(devices_needed(run, optimum.seconds));
  return optimum;
}

TwoPoints two_points(const OperatorRun& run, double devices, double seconds) {
  const std::vector<ScalingPoint>& points = run.curve.points();
  const std::size_t upper = run.curve.point_from(devices);
  const auto all = static_cast<double>(run.operators);
  TwoPoints found{0, 0, points[upper].devices, all};
  if (upper == 0) return found;
  const double slow = points[upper - 1].seconds;
  const double fast = points[upper].seconds;
  found.lower_devices = points[upper - 1].devices;
  found.upper = std::clamp((all * slow - seconds) / (slow - fast), 0.0, all);
  found.lower = all - found.upper;
  return found;
}

std::vector<RunPart> rounded_parts(std::size_t run, const TwoPoints& points) {
  const auto all = static_cast<std::int64_t>(std::llround(points.lower + points.upper));
  const auto upper = static_cast<std::int64_t>(std::llround(points.upper));
  std::vector<RunPart> parts;
  if (upper > 0) parts.push_back({run, points.upper_devices, upper});
  if (upper < all) parts.push_back({run, points.lower_devices, all - upper});
  return parts;
}

std::vector<Wave> waves_of(const std::vector<OperatorRun>& runs, const std::vector<RunPart>& parts,
                           std::int64_t devices) {
  for (const RunPart& part : parts) {
    HDPSIM_CHECK(part.devices <= devices && part.operators > 0, "{} operators on {} of {} devices", part.operators,
                 part.devices, devices);
  }
  std::vector<Wave> best;
  for (const double use_kept : uses_kept) {
    std::vector<Wave> waves = WaveMaker(runs, parts, devices, use_kept).make();
    const auto cost = [](const std::vector<Wave>& made) { return std::pair(seconds_together(made), made.size()); };
    if (best.empty() || cost(waves) < cost(best)) best = std::move(waves);
  }
  return best;
}

double LevelPlan::seconds() const {
  return seconds_together(waves);
}

LevelPlan plan_level(const std::vector<OperatorRun>& runs, std::int64_t devices) {
  LevelPlan plan{level_optimum(runs, devices), {}};
  std::vector<RunPart> parts;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    const TwoPoints points = two_points(runs[run], plan.optimum.devices[run], plan.optimum.seconds);
    const std::vector<RunPart> rounded = rounded_parts(run, points);
    parts.insert(parts.end(), rounded.begin(), rounded.end());
  }
  plan.waves = waves_of(runs, parts, devices);
  std::vector<Wave> simple = waves_of(runs, nearest_parts(runs, plan.optimum), devices);
  if (seconds_together(simple) < plan.seconds()) plan.waves = std::move(simple);
  return plan;
}

}  // namespace hdpsim
