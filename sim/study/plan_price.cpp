#include "sim/study/plan_price.h"

#include <utility>

#include "sim/base/check.h"
#include "sim/engine/cut_planner.h"

namespace hdpsim {
namespace {

ClusterSpec known_cluster(const PointSpec& spec) {
  ClusterSpec cluster = spec.cluster;
  if (spec.knows.speeds) return cluster;
  cluster.speed.clear();
  for (auto& kind : cluster.kinds) kind.speed = 1;
  return cluster;
}

}  // namespace

PlanPrice::PlanPrice(const StudyPoint& point)
    : cluster_(known_cluster(point.spec)),
      profile_(point.spec.profile),
      layout_(layout_of(point.spec)),
      cut_(point.spec.cut),
      faults_(point.spec.knows.faults ? point.spec.conditions.faults : std::vector<Fault>{}),
      lowered_(point.lowered),
      cost_(cut_ == TokenCut::per_document ? nullptr : make_cost_model(*profile_)) {}

double PlanPrice::seconds(const Plan& plan) {
  std::unique_ptr<World> world = take_world();
  if (!faults_.empty()) world->set_time_factors(fault_factors({{}, faults_}, cluster_.devices, plan.step));
  const auto simulated = [&](const Plan& made) {
    const Program program(made, lowered_);
    return simulate(program, world->machine(), Grain::closed_form, {}, &world->forms()).step_time.seconds();
  };
  double seconds = 0;
  if (cut_ == TokenCut::per_document) {
    seconds = simulated(plan);
  } else {
    Plan cut = plan;
    cut_plan(cut, cut_, lowered_->options, *cost_);
    seconds = simulated(cut);
  }
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(world));
  return seconds;
}

std::unique_ptr<World> PlanPrice::take_world() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<World> world = std::move(idle_.back());
      idle_.pop_back();
      return world;
    }
  }
  Diagnostics found;
  auto world = World::make(cluster_, *profile_, layout_, found);
  HDPSIM_CHECK(world != nullptr, "a world that was accepted is refused: {}", found.text());
  return world;
}

}  // namespace hdpsim
