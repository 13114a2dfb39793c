#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/analysis/step_result.h"
#include "sim/engine/simulator.h"
#include "sim/engine/world.h"
#include "sim/plan/planner.h"
#include "sim/plan/step_bounds.h"
#include "sim/study/outsize.h"
#include "sim/study/point.h"

namespace hdpsim {

/// A job that trains beside the main one, ready to run.
struct StudyNeighbour {
  std::string name;
  LoweringOptions lowering;
  BatchSourcePtr batches;
  std::unique_ptr<Planner> planner;
  BatchSourcePtr held_back;  ///< Null: it trains each batch as it comes.

  /// A plan that the checker refuses is a bug of the policy: a failed check.
  [[nodiscard]] Plan plan(std::int64_t step) const;
};

/// A policy has no plan for the batch of a step; it points at the plan of the study. Other runs are not concerned.
class PlanRefused : public InputError {
 public:
  PlanRefused(const InputError& said, std::int64_t step);
  [[nodiscard]] const Refusal& refusal() const { return refusal_; }

 private:
  Refusal refusal_;
};

struct StudyPoint;

/// What one step of a point trains, and by which plan.
struct PointStep {
  const StudyPoint& point;
  Batch batch;
  Plan plan;

  /// Useful FLOPs of the batch: those of the copies of tokens that experts keep.
  [[nodiscard]] Flops model_flops() const;
  /// What no plan that uses host memory as this one does takes less than, whatever the schedule of a pipeline (`fill`
  /// is 0). A plan that offloads may hold any sequence on any rank, so that the capacity does not bound it.
  [[nodiscard]] StepBounds bounds() const;
  /// The same in one figure. `speeds` are those of the workers relative to the device that the costs are for
  /// (Machine::speed); slower ones leave the bound as it is.
  [[nodiscard]] Duration bound(const std::vector<double>& speeds) const;
};

/// A world in which something is unlike the point's that nobody knows beforehand.
struct StepProbe {
  std::function<std::unique_ptr<World>()> make_world;
  DeviceConditions devices;
};

/// The change of a step with the costs of one family is the difference quotient over `change` either way.
struct FamilyProbe {
  double change = 0;
  StepProbe dearer;
  StepProbe cheaper;
};

/// What a step is simulated again with, under the same plan, for the intervals of a study's `uncertainty`.
struct UncertaintyProbes {
  std::vector<FamilyProbe> families;  ///< In the order of CostFamily.
  std::vector<StepProbe> slow_nodes;  ///< One slow node more (probed_nodes()).
  std::vector<StepProbe> fitted;      ///< For each of resampled_parameters(), its value at p5 and at p95.
  std::vector<StepProbe> routes;      ///< Other routes (rerouted()).
};

/// One point of a study, resolved: a value with all that its steps are computed from, which is handed on to those who
/// plan, lower, simulate and sum up. All plans see the same data, and but for those that hold sequences back the same
/// batches.
struct StudyPoint {
  std::vector<RunInfo::Coordinate> coordinates;
  PointSpec spec;
  std::shared_ptr<const LoweringContext> lowered;  ///< What its job computes: how plans are lowered.
  DeviceRoom room;                                 ///< What its plans have to fit into.
  /// Points with the same number can share a World.
  std::size_t world = 0;
  BatchSourcePtr batches;
  WorkModel work;                                  ///< The planners' model of the time of a micro-batch.
  std::vector<std::unique_ptr<Planner>> planners;  ///< In the order of Study::plans.
  std::vector<BatchSourcePtr> held_back;           ///< In the same order; null: that plan trains `batches`.
  std::vector<StudyNeighbour> neighbours;          ///< In the order of the jobs of its worlds.
  std::vector<BackgroundTraffic> traffic;          ///< What else uses the fabric, without end.
  std::string identity;                            ///< YAML of all values on which its steps depend.
  Outsize outsize;                                 ///< The likely cause if a step is too long to be simulated.

  [[nodiscard]] const LoweringOptions& lowering() const { return lowered->options; }
  /// What a plan trains.
  [[nodiscard]] const BatchSource& batches_of(std::size_t plan) const;
  /// A step by the plan that its policy makes, which is not checked (require_sound()). PlanRefused if it has none.
  [[nodiscard]] PointStep planned(std::size_t plan, std::int64_t step, Batch batch) const;
  /// What no plan of the batch beats on the mesh, by the costs that its planners know. O(n + ranks).
  [[nodiscard]] StepBounds bounds(const Batch& batch) const;
  /// What the planners' model says of a step's seconds. `plan` must be sound.
  [[nodiscard]] double estimate(const Plan& plan) const;
  /// Worlds that the point's `uncertainty` asks for, which it must have. The point must outlive them.
  [[nodiscard]] UncertaintyProbes probes() const;

  /// The world of the simulated cluster and all jobs that train on it; each thread needs its own.
  [[nodiscard]] std::unique_ptr<World> make_world() const;
  /// The same with another cluster of the same nodes.
  [[nodiscard]] std::unique_ptr<World> make_world(const ClusterSpec& cluster) const;
  /// The same with the costs of families multiplied by `factors`.
  [[nodiscard]] std::unique_ptr<World> make_world(const FamilyFactors& factors) const;
  [[nodiscard]] std::unique_ptr<World> make_world(const ClusterSpec& cluster, const DeviceProfile& profile) const;
  /// The same with another profile of its device.
  [[nodiscard]] std::unique_ptr<World> make_world(const DeviceProfile& profile) const;
};

/// Takes a point apart for its planners. `on` is the point's job.
[[nodiscard]] PlanningContext planning_context(const PointSpec& spec, const Job& on);

/// The model of groups that choose among the ways to share in which devices have room for C tokens, and whose times do
/// not depend on what else a group shares: `own` with others. Null where there is one way.
[[nodiscard]] std::shared_ptr<const WorkModel> work_in_any_way(const WorkModel& own, const PointSpec& spec,
                                                               const Job& on);

/// The world of a cluster with a job and all jobs of `background` that train. Null, with every problem reported, if one
/// does not fit.
[[nodiscard]] std::unique_ptr<World> world_of(const ClusterSpec& cluster, const DeviceProfile& profile,
                                              const JobLayout& layout, const std::vector<BackgroundSpec>& background,
                                              Diagnostics& diagnostics);

}  // namespace hdpsim
