#include "sim/study/study.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "sim/base/check.h"
#include "sim/base/printable.h"
#include "sim/base/quantity_text.h"
#include "sim/document/reader.h"
#include "sim/engine/cut_planner.h"
#include "sim/model/kept_tensors.h"
#include "sim/model/work.h"
#include "sim/profile/profile_file.h"
#include "sim/program/activations_in_flight.h"
#include "sim/study/capacity.h"
#include "sim/study/cut_rules.h"
#include "sim/study/framework.h"
#include "sim/study/not_modelled.h"
#include "sim/study/override.h"
#include "sim/study/plan_files.h"
#include "sim/study/planning.h"
#include "sim/study/problems.h"
#include "sim/study/sharing_choice.h"
#include "sim/study/step_size.h"
#include "sim/study/study_changes.h"
#include "sim/study/study_defaults.h"
#include "sim/study/study_identity.h"
#include "sim/study/study_keys.h"
#include "sim/study/study_paths.h"
#include "sim/study/sweep.h"
#include "sim/study/without.h"

namespace hdpsim {
namespace {

// `static`, or `{static: tuned}`.
void read_compare_to(const Value& value, Study& study, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const StudyPlan& plan : study.plans) names.push_back(plan.name);
  if (value.is_map() && value.entries.size() != 1) {
    diagnostics.error(value.position, "speed-ups are over one plan", "write compare_to: {static: tuned}");
    return;
  }
  const Value name = value.is_map() ? Value::scalar(value.entries[0].key, value.entries[0].position) : value;
  if (read_choice(name, "plan", names, diagnostics)) study.compare_to = name.text;
  if (value.is_map()) {
    study.tunes_baseline =
        read_choice(value.entries[0].value, "mesh of a baseline", {"tuned"}, diagnostics).has_value();
  }
  const bool is_given = std::any_of(study.plans.begin(), study.plans.end(), [&](const StudyPlan& plan) {
    return plan.name == study.compare_to && names_plan_files(plan.entry);
  });
  if (study.tunes_baseline && is_given) {
    diagnostics.error(value.position, fmt::format("the plans of '{}' are made for the study's mesh", *study.compare_to),
                      fmt::format("write compare_to: {}", *study.compare_to));
  }
}

void read_whole(const Value& root, Study& study, Diagnostics& diagnostics) {
  MapReader reader(root, "the study", diagnostics);  // its other keys belong to the points
  study.name = printable(reader.required<std::string>("name").value_or(""));
  if (const Value* plans = reader.require("plans")) study.plans = read_study_plans(*plans, diagnostics);
  if (const Value* replay = reader.find("replay")) study.replay = read_replay(*replay, diagnostics);
  if (const Value* tune = reader.find("tune")) study.tune = read_tune(*tune, diagnostics);
  if (const Value* compare_to = reader.find("compare_to")) read_compare_to(*compare_to, study, diagnostics);
}

// A key that no section has is told once and left out: points, which hold the whole study each, need not carry it.
void drop_unknown_keys(Value& root, Diagnostics& diagnostics) {
  MapReader reader(root, "the study", diagnostics);
  for (const StudySection& section : study_sections()) (void)reader.find(section.text.name);
  reader.finish();
  std::erase_if(root.entries, [](const Value::Entry& entry) {
    return std::none_of(study_sections().begin(), study_sections().end(),
                        [&](const StudySection& section) { return section.text.name == entry.key; });
  });
}

// The points are known by now, so that ranks and steps can be checked against them.
void read_output_of(const Value& root, Study& study, Problems& problems) {
  const Value* output = root.find("output");
  if (output == nullptr) return;
  OutputLimits limits;
  for (const StudyPoint& point : study.points) {
    limits.ranks = std::min(limits.ranks, point.spec.mesh.hdp);
    limits.steps = std::min(limits.steps, point.spec.steps);
  }
  Diagnostics found;
  study.output = read_output(*output, limits, found);
  problems.add(found, output->position);
}

// A refusal is the answer of one plan alone, which its run gives.
std::unique_ptr<Planner> planner_of(const PointSpec& spec, const Policy& policy, const PlanningContext& context,
                                    Diagnostics& diagnostics) {
  return with_cut(make_planner(policy, context, diagnostics), spec.cut, lowering_of(spec),
                  make_cost_model(*spec.profile));
}

std::optional<Plan> plan_unless_refused(const Planner& planner, const Batch& batch, std::int64_t step) {
  try {
    return planner.plan(batch, step);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

bool all_plans_fit(const StudyPoint& point) {
  const LoweringOptions job = lowering_of(point.spec);
  const DeviceRoom room = room_of(point.spec);
  for (std::int64_t step = 0; step < point.spec.steps; ++step) {
    for (std::size_t i = 0; i < point.planners.size(); ++i) {
      const auto plan = plan_unless_refused(*point.planners[i], point.batches_of(i).step(step), step);
      if (plan && !fits(*plan, job, room)) return false;
    }
  }
  return true;
}

// The world of the cluster with all jobs that train on it. Null, with every problem reported, if one does not fit.
std::unique_ptr<World> world_of(const ClusterSpec& cluster, const DeviceProfile& profile, const JobLayout& layout,
                                const std::vector<BackgroundSpec>& background, Diagnostics& diagnostics) {
  auto world = World::make(cluster, profile, layout, diagnostics);
  if (world == nullptr) return nullptr;
  for (const BackgroundSpec& other : background) {
    if (other.job != nullptr && !world->add_neighbour(layout_of(*other.job), diagnostics)) return nullptr;
  }
  return world;
}

bool sweeps_over_clusters(const Value& study) {
  const Value* sweep = study.find("sweep");
  if (sweep == nullptr) return false;
  const auto names_cluster = [](const Value& map) {
    return std::any_of(map.entries.begin(), map.entries.end(),
                       [](const Value::Entry& entry) { return entry.key.starts_with("cluster"); });
  };
  return names_cluster(*sweep) || std::any_of(sweep->items.begin(), sweep->items.end(), [&](const Value& point) {
           const Value* set = point.find("set");
           return set != nullptr && names_cluster(*set);
         });
}

// The study independent of other files: the cluster in full (unless a sweep replaces it), absolute paths and the names
// of plans, which may follow from paths.
Value resolved(Value study, const Catalog& catalog) {
  if (!sweeps_over_clusters(study)) {
    Value* cluster = study.find("cluster");
    *cluster = catalog.expanded_cluster(*cluster);
  }
  for (Value& entry : study.find("plans")->items) {
    if (names_plan_files(entry)) entry.set("name", Value::scalar(name_of_plan_files(entry), entry.position));
  }
  make_paths_absolute(study);
  return study;
}

// States the profile that was chosen by the cluster's device, unless points differ in it.
void state_profile(const std::vector<StudyPoint>& points, Value& resolved) {
  const Value* stated = resolved.find("profile");
  if ((stated != nullptr && !stated->is_null()) || points.empty()) return;
  const std::string& name = points.front().spec.profile->name;
  const bool is_same = std::all_of(points.begin(), points.end(),
                                   [&](const StudyPoint& point) { return point.spec.profile->name == name; });
  if (is_same) resolved.set("profile", Value::scalar(name, resolved.position));
}

/// Makes the points of one study. Points that agree in all keys with Decides::world share a world.
class PointMaker {
 public:
  /// `advises`: problems of room come with changes of the study that solve them.
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
    add_neighbours(point, *world);
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
    const PlanningContext context = planning_context(point.spec, on);
    point.work = context.work;
    point.planners.clear();
    point.held_back.clear();
    Diagnostics found;
    for (const StudyPlan& plan : study_.plans) {
      if (plan.given != nullptr) check_cuts(*plan.given, point.spec, found);
      if (!plan.policy) continue;
      const auto& planner = point.planners.emplace_back(planner_of(point.spec, *plan.policy, context, found));
      point.held_back.push_back(planner ? planner->held_back(*point.batches, point.spec.steps) : nullptr);
    }
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
      problems.error(mesh_position_, no_capacity_text(lowering_of(point.spec), room_of(point.spec).memory));
    }
  }

  void add_neighbours(StudyPoint& point, World& world) {
    for (const BackgroundSpec& other : point.spec.background) {
      if (other.job == nullptr) continue;
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

namespace {

std::unique_ptr<World> accepted_world(const ClusterSpec& cluster, const DeviceProfile& profile, const JobLayout& layout,
                                      const std::vector<BackgroundSpec>& background) {
  Diagnostics found;
  std::unique_ptr<World> made = world_of(cluster, profile, layout, background, found);
  HDPSIM_CHECK(made != nullptr, "a world that was accepted is refused: {}", found.text());
  return made;
}

// The measurements that would improve a family: the most frequent shapes of a full micro-batch.
std::array<std::string, cost_families> advice_for(const LoweringOptions& job, std::int64_t capacity) {
  const Transformer model = of_attention(job.model);
  const std::int64_t tp = job.mesh.tp;
  const std::string heads = fmt::format("{} heads of {} and {} key-value heads", model.heads / tp, model.head_dim,
                                        std::max<std::int64_t>(1, model.kv_heads / tp));
  const auto attention = [&](std::string_view direction) {
    return fmt::format("calibrate attention {} at blocks of {} x {} and up to {} tokens, {}", direction,
                       count_text(capacity), count_text((capacity + 1) / 2), count_text(capacity), heads);
  };
  const Bytes keys_and_values = kv_bytes(model, capacity, tp);
  const Bytes hidden = hidden_bytes(model, capacity);
  return {attention("forward"),
          attention("backward"),
          fmt::format("calibrate matrix products of {} rows, {} wide", count_text(capacity), model.hidden),
          fmt::format("calibrate memory-bound kernels of {}", bytes_text(hidden / tp)),
          fmt::format("calibrate messages of {}", bytes_text(keys_and_values)),
          fmt::format("calibrate all-gathers of {} among {} GPUs", bytes_text(hidden), tp),
          fmt::format("calibrate host copies of {}",
                      bytes_text(activation_bytes(model, capacity, tp, job.recipe.recompute)))};
}

UncertaintyModel uncertainty_model(const UncertaintyOptions& options, const DeviceProfile& profile,
                                   const LoweringOptions& job, std::int64_t capacity, std::int64_t nodes) {
  UncertaintyModel model{.samples = options.samples,
                         .seed = options.seed,
                         .errors = errors_of(options, profile, of_attention(job.model).head_dim),
                         .slow_nodes = options.slow_nodes,
                         .nodes = nodes,
                         .advice = advice_for(job, capacity)};
  const std::vector<OpenParameter> resampled = resampled_parameters(options, profile);
  model.fitted = correlation_root(resampled, profile);
  for (const OpenParameter& open : resampled) {
    for (const CostFamily family : open.parameter->families) model.of_fitted[static_cast<std::size_t>(family)] = true;
  }
  return model;
}

}  // namespace

Plan StudyNeighbour::plan(std::int64_t step) const {
  return planner->plan((held_back ? *held_back : *batches).step(step), step);
}

const BatchSource& StudyPoint::batches_of(std::size_t plan) const {
  const BatchSourcePtr& own = held_back.at(plan);
  return own ? *own : *batches;
}

std::unique_ptr<World> StudyPoint::make_world() const {
  return make_world(spec.cluster);
}

std::unique_ptr<World> StudyPoint::make_world(const ClusterSpec& cluster) const {
  return accepted_world(cluster, *spec.profile, layout_of(spec), spec.background);
}

std::unique_ptr<World> StudyPoint::make_world(const FamilyFactors& factors) const {
  DeviceProfile profile = *spec.profile;
  profile.factors = factors;
  return make_world(profile);
}

std::unique_ptr<World> StudyPoint::make_world(const DeviceProfile& profile) const {
  return accepted_world(spec.cluster, profile, layout_of(spec), spec.background);
}

namespace {

// Where a plan is named.
const Position& place_of_plan(const Value& entry) {
  return entry.is_map() && entry.entries.size() == 1 ? entry.entries.front().position : entry.position;
}

}  // namespace

RunInfo Study::run_info(std::size_t point, std::size_t plan) const {
  const StudyPoint& at = points.at(point);
  const PointSpec& spec = at.spec;
  const DeviceProfile& profile = *spec.profile;
  const LoweringOptions job = lowering_of(spec);
  std::vector<RunInfo::Neighbour> background;
  for (const BackgroundSpec& other : spec.background) {
    background.push_back({other.name, other.what(), other.gpus(spec.cluster)});
  }
  return {.point = point,
          .coordinates = at.coordinates,
          .plan = plans.at(plan).name,
          .place = place_of_plan(plans[plan].entry),
          .setting = spec.setting(),
          .profile = fmt::format("{} ({})", profile.name, profile_label_name(profile.provenance.label)),
          .background = std::move(background),
          .gpus = spec.mesh.devices(),
          .stages = spec.mesh.pp,
          .peak = mean_peak(profile.datasheet.peak, spec.cluster, spec.nodes),
          .device_memory = spec.cluster.least_device_memory(),
          .host_memory = spec.cluster.least_host_share(),
          .capacity = spec.capacity,
          .trace = at.batches->use(spec.steps),
          .not_modelled = not_modelled(profile, layout_of(spec), spec.recipe),
          .nodes = spec.nodes.count(spec.cluster),
          .failures = spec.failures,
          .uncertainty = spec.uncertainty
                             ? std::optional(uncertainty_model(*spec.uncertainty, profile, job, spec.capacity,
                                                               spec.nodes.count(spec.cluster)))
                             : std::nullopt,
          .sharing = std::string(word_of(spec.recipe.key_exchange)),
          .cut = std::string(word_of(spec.cut))};
}

namespace {

/// By name, the texts of a study that are not files, for messages.
using Texts = std::map<std::string, std::string>;

Study study_of(Value root, const Texts& texts, Catalog& catalog, Diagnostics diagnostics, bool advises) {
  Study study;
  drop_unknown_keys(root, diagnostics);
  read_whole(root, study, diagnostics);
  fill_in_framework(root, catalog.frameworks(), diagnostics);
  const Value complete = with_defaults(std::move(root));
  std::vector<SweepPoint> sweep = expand_sweep(complete, diagnostics);
  if (sweep.empty()) sweep.push_back({{}, complete});  // to report what else is wrong

  Problems problems(diagnostics);
  PointMaker maker(study, catalog, problems, advises);
  for (SweepPoint& point : sweep) maker.add(std::move(point));
  read_output_of(complete, study, problems);
  problems.throw_if_any(texts);
  study.resolved = resolved(complete, catalog);
  state_profile(study.points, study.resolved);
  return study;
}

/// The changes of a user to a study that has been written.
struct Changes {
  const std::vector<std::string>& overrides;
  const std::vector<std::string>& without;
};

Study study_with(const Changes& changes, Value root, Texts texts, Catalog& catalog, Diagnostics diagnostics) {
  if (root.is_null()) diagnostics.throw_if_any();
  apply_overrides(root, changes.overrides, diagnostics);
  apply_without(root, changes.without, diagnostics);
  texts.emplace(override_source, override_text(changes.overrides));
  texts.emplace(without_source, override_text(changes.without));
  return study_of(std::move(root), texts, catalog, std::move(diagnostics), true);
}

}  // namespace

Study load_study(const std::string& path, const std::vector<std::string>& overrides, Catalog& catalog,
                 const std::vector<std::string>& without) {
  Diagnostics diagnostics;
  Value root = load_document(path, diagnostics);
  return study_with({overrides, without}, std::move(root), {}, catalog, std::move(diagnostics));
}

Study parse_study(const std::string& name, const std::string& text, const std::vector<std::string>& overrides,
                  Catalog& catalog, const std::vector<std::string>& without) {
  Diagnostics diagnostics;
  Value root = parse_document(name, text, diagnostics);
  return study_with({overrides, without}, std::move(root), {{name, text}}, catalog, std::move(diagnostics));
}

Study read_study(Value root, Catalog& catalog) {
  return study_of(std::move(root), {}, catalog, {}, false);
}

}  // namespace hdpsim
