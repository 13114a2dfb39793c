#include "sim/replay/best_static_share.h"

#include <algorithm>
#include <memory>

#include "sim/replay/replay.h"
#include "sim/run/best_static.h"
#include "sim/run/ordered_work.h"
#include "sim/run/step.h"

namespace hdpsim {
namespace {

constexpr std::int64_t most_sampled = 32;

/// Times of the same step.
struct SampledStep {
  double baseline_s = 0;
  double best_s = 0;
};

}  // namespace

std::optional<BestStaticShare> best_static_share(const Study& study, const StudyPoint& point, Catalog& catalog,
                                                 std::size_t jobs, const std::function<bool()>& stop) {
  const std::size_t baseline = baseline_plan(study);
  const auto number = static_cast<std::size_t>(&point - study.points.data());
  const auto best = best_static_plan(study, number, baseline, catalog, stop);
  if (!best) return std::nullopt;
  const RunInfo info = best->study.run_info(0, 0);
  BestStaticShare found{.plan = best->name, .sharing = info.sharing, .cut = info.cut, .cp = best->cp};
  found.steps = std::min(most_sampled, point.spec.steps);
  if (best->name == study.plans[baseline].name) return found;

  const StudyPoint& other = best->study.points.front();
  const auto make_worker = [&] {
    return [&, world = std::shared_ptr<World>(point.make_world()),
            best_world = std::shared_ptr<World>(other.make_world())](std::int64_t sample) {
      const std::int64_t step = sample * point.spec.steps / found.steps;
      return SampledStep{simulate_step(point, baseline, step, *world).result.time.seconds(),
                         simulate_step(other, 0, step, *best_world).result.time.seconds()};
    };
  };
  SampledStep sum;
  const auto take = [&](std::int64_t, SampledStep&& step) {
    sum.baseline_s += step.baseline_s;
    sum.best_s += step.best_s;
  };
  if (!run_in_order({0, found.steps, jobs, stop}, make_worker, take)) return std::nullopt;
  found.share = sum.best_s / sum.baseline_s;
  return found;
}

}  // namespace hdpsim
