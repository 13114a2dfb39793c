#include "sim/study/point_maker.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/base/check.h"
#include "sim/engine/cut_planner.h"
#include "sim/program/activations_in_flight.h"
#include "sim/study/capacity.h"
#include "sim/study/data_options.h"
#include "sim/study/plan_price.h"
#include "sim/study/sharing_choice.h"
#include "sim/study/study_changes.h"
#include "sim/study/study_keys.h"
#include "sim/study/study_paths.h"
#include "sim/study/study_plans.h"

namespace hdpsim {
namespace {

// A refusal is the answer of one plan alone, which its run gives.
std::unique_ptr<Planner> planner_of(const PointSpec& spec, const Policy& policy, const PlanningContext& context,
                                    Diagnostics& diagnostics) {
  return with_cut(make_planner(policy, context, diagnostics), spec.cut, lowering_of(spec),
                  make_cost_model(*spec.profile));
}

/// work_in_any_way() of a point, made when the first of its planners asks.
class AskedWork {
 public:
  AskedWork(const WorkModel& own, const PointSpec& spec, const Job& on) : own_(own), spec_(spec), on_(&on) {}

  [[nodiscard]] std::shared_ptr<const WorkModel> get() {
    HDPSIM_CHECK(on_ != nullptr, "ways to share are asked for after planners were made");
    if (!is_asked_) made_ = work_in_any_way(own_, spec_, *on_);
    is_asked_ = true;
    return made_;
  }
  /// Nobody asks any more: what planners know of groups, whose ways they may have chosen.
  [[nodiscard]] const WorkModel& finish() {
    on_ = nullptr;
    return made_ ? *made_ : own_;
  }

 private:
  WorkModel own_;
  const PointSpec& spec_;
  const Job* on_;
  bool is_asked_ = false;
  std::shared_ptr<const WorkModel> made_;
};

std::optional<Plan> plan_unless_refused(const Planner& planner, const Batch& batch, std::int64_t step) {
  try {
    return planner.plan(batch, step);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

bool all_plans_fit(const StudyPoint& point) {
  for (std::int64_t step = 0; step < point.spec.steps; ++step) {
    for (std::size_t i = 0; i < point.planners.size(); ++i) {
      const auto plan = plan_unless_refused(*point.planners[i], point.batches_of(i).step(step), step);
      if (plan && !fits(*plan, point.lowering(), point.room)) return false;
    }
  }
  return true;
}

BackgroundTraffic traffic_among(const std::string& name, const Traffic& traffic, const NodeList& nodes,
                                std::int64_t devices_per_node) {
  BackgroundTraffic among{name, messages_of(traffic)};
  for (Message& message : among.messages) {
    message.from = nodes.device(message.from.index(), devices_per_node);
    message.to = nodes.device(message.to.index(), devices_per_node);
  }
  return among;
}

class PointMaker {
 public:
  PointMaker(Study& study, Catalog& catalog, Problems& problems, bool advises)
      : study_(study), catalog_(catalog), problems_(problems), advises_(advises) {}

  void add(SweepPoint&& sweep_point) {
    StudyPoint point;
    try {
      add(std::move(sweep_point), point);
    } catch (const QuantityOverflow& overflow) {
      Diagnostics found;
      found.add(point.outsize.problem("a micro-batch of this study", overflow.what()));
      problems_.add(found, mesh_position_);
    }
  }

 private:
  void add(SweepPoint&& sweep_point, StudyPoint& point) {
    Diagnostics found;
    mesh_position_ = sweep_point.study.position;
    std::optional<PointSpec> spec = read_point(sweep_point.study, catalog_, found, room_help(sweep_point.study));
    problems_.add(found, sweep_point.study.position);
    if (!spec) return;
    point.coordinates = std::move(sweep_point.coordinates);
    point.spec = std::move(*spec);
    point.lowered = std::make_shared<const LoweringContext>(lowering_of(point.spec));
    point.room = room_of(point.spec);
    const std::string data = to_yaml(*sweep_point.study.find("data"));
    point.identity = identity_of(std::move(sweep_point.study), point);
    World* world = shared_world(point, mesh_position_);
    if (world == nullptr) return;
    point.batches = make_batches(point.spec.lengths, point.spec.batch);
    if (!has_steps_of_a_size(point.spec.batch, *point.batches)) return;
    Diagnostics problems_of_plans = make_planners(point, world->job());
    if (problems_of_plans.empty() && point.spec.capacity_is_chosen &&
        holds_all_micro_batches(*make_schedule(point.spec.pipeline, point.spec.mesh.pp))) {
      fit_capacity_to_plans(point, world->job(), problems_of_plans);
    }
    if (problems_of_plans.empty() && data_.insert(data).second) check_given_plans(point, problems_of_plans);
    problems_.add(problems_of_plans, mesh_position_);
    add_background(point, *world);
    study_.points.push_back(std::move(point));
  }

  bool has_steps_of_a_size(const BatchOptions& options, const BatchSource& batches) {
    Diagnostics found;
    check_step_size(options, batches, found);
    problems_.add(found, mesh_position_);
    return found.empty();
  }

  // For the first point alone: a sweep has many.
  [[nodiscard]] RoomHelp room_help(const Value& study) {
    if (!advises_) return {};
    return [&](const PointSpec& spec) {
      advises_ = false;
      return changes_with_room(study, spec, catalog_);
    };
  }

  // Makes the planners of all plans for the point's capacity. Returns their problems.
  Diagnostics make_planners(StudyPoint& point, const Job& on) const {
    PlanningContext context = planning_context(point.spec, on);
    context.simulated_seconds = [price = std::make_shared<PlanPrice>(point)](const Plan& plan) {
      return price->seconds(plan);
    };
    const auto any_way = std::make_shared<AskedWork>(context.work, point.spec, on);
    context.work_in_any_way = [any_way] { return any_way->get(); };
    point.planners.clear();
    point.held_back.clear();
    Diagnostics found;
    for (const StudyPlan& plan : study_.plans) {
      if (plan.given != nullptr) {
        check_cuts(*plan.given, point.spec, found);
        (void)any_way->get();
      }
      if (!plan.policy) continue;
      const auto& planner = point.planners.emplace_back(planner_of(point.spec, *plan.policy, context, found));
      point.held_back.push_back(planner ? planner->held_back(*point.batches, point.spec.steps) : nullptr);
    }
    point.work = any_way->finish();
    return found;
  }

  // Points with the same data have the same batches, all of which are drawn here.
  void check_given_plans(const StudyPoint& point, Diagnostics& problems) const {
    for (const StudyPlan& plan : study_.plans) {
      if (plan.given == nullptr) continue;
      check_plan_files(*plan.given, plan.entry.position, point.spec.steps, *point.batches, problems);
    }
  }

  // With a schedule that holds all micro-batches, a device holds all that a policy assigns to its rank in a step, which
  // is known only from the plans.
  void fit_capacity_to_plans(StudyPoint& point, const Job& on, Diagnostics& problems) const {
    const auto all_fit = [&](std::int64_t capacity) {
      point.spec.capacity = capacity;
      return make_planners(point, on).empty() && all_plans_fit(point);
    };
    const std::int64_t most = point.spec.capacity;
    if (all_fit(most)) return;
    const auto capacity = largest_fitting(most, all_fit);
    if (capacity) {
      (void)all_fit(*capacity);  // makes its planners
    } else {
      problems.error(mesh_position_, no_capacity_text(point.lowering(), point.room.memory));
    }
  }

  void add_background(StudyPoint& point, World& world) {
    for (const BackgroundSpec& other : point.spec.background) {
      if (other.job == nullptr) {
        point.traffic.push_back(
            traffic_among(other.name, other.traffic, other.nodes, point.spec.cluster.devices_per_node));
        continue;
      }
      Diagnostics found;
      const PlanningContext context = planning_context(*other.job, world.neighbour(point.neighbours.size()));
      StudyNeighbour& job = point.neighbours.emplace_back(
          StudyNeighbour{other.name, lowering_of(*other.job), make_batches(other.job->lengths, other.job->batch),
                         planner_of(*other.job, *other.policy, context, found), nullptr});
      if (!has_steps_of_a_size(other.job->batch, *job.batches)) return;
      if (job.planner) job.held_back = job.planner->held_back(*job.batches, point.spec.steps);
      problems_.add(found, other.plan.position);
    }
  }

  // The identity of a point. Also sets what needs the study with its cluster in full: mesh_position_, `outsize` and
  // world_key_.
  std::string identity_of(Value study, StudyPoint& point) {
    const PointSpec& spec = point.spec;
    mesh_position_ = study.find("mesh") == nullptr ? study.position : study.find("mesh")->position;
    if (Value* cluster = study.find("cluster")) *cluster = catalog_.expanded_cluster(*cluster);
    point.outsize = outsize_of(study, spec);
    make_paths_absolute(study);
    world_key_ = world_text(study);
    return fmt::format("{}files: {:016x}\n", identity_text(std::move(study)), spec.fingerprint);
  }

  World* shared_world(StudyPoint& point, const Position& where) {
    const auto [known, is_new] = worlds_.try_emplace(world_key_, worlds_.size(), nullptr);
    auto& [number, world] = known->second;
    point.world = number;
    if (is_new) {
      Diagnostics found;
      const PointSpec& spec = point.spec;
      world = world_of(spec.cluster, *spec.profile, layout_of(spec), spec.background, found);
      problems_.add(found, where);
    }
    return world.get();
  }

  Study& study_;
  Catalog& catalog_;
  Problems& problems_;
  bool advises_;
  std::map<std::string, std::pair<std::size_t, std::unique_ptr<World>>> worlds_;
  std::set<std::string> data_;  // `data` of the points so far, as text
  std::string world_key_;
  Position mesh_position_;
};

}  // namespace

void add_points(std::vector<SweepPoint> points, Study& study, Catalog& catalog, Problems& problems, bool advises) {
  PointMaker maker(study, catalog, problems, advises);
  for (SweepPoint& point : points) maker.add(std::move(point));
}

}  // namespace hdpsim
