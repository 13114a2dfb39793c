#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/goodput.h"
#include "sim/cluster/cluster.h"
#include "sim/cluster/device_conditions.h"
#include "sim/cluster/node_choice.h"
#include "sim/cluster/node_list.h"
#include "sim/cluster/placement.h"
#include "sim/document/key.h"
#include "sim/engine/simulator.h"
#include "sim/engine/world.h"
#include "sim/loading/loading_spec.h"
#include "sim/model/experts.h"
#include "sim/model/recipe.h"
#include "sim/model/transformer.h"
#include "sim/network/traffic.h"
#include "sim/plan/connection_table.h"
#include "sim/plan/policy.h"
#include "sim/profile/device_profile.h"
#include "sim/program/program.h"
#include "sim/study/capacity.h"
#include "sim/study/catalog.h"
#include "sim/study/expert_options.h"
#include "sim/study/uncertainty_options.h"
#include "sim/trace/batch_source.h"
#include "sim/trace/trace_file.h"
#include "sim/trust/published_errors.h"

namespace hdpsim {

struct PointSpec;

/// A job that trains, or traffic without end, on nodes of its own beside the main job.
struct BackgroundSpec {
  std::string name;
  NodeList nodes;
  std::shared_ptr<const PointSpec> job;  ///< Null: traffic.
  Value plan;                            ///< The entry of the job's planner.
  std::optional<Policy> policy;          ///< The same, read; empty if it is wrong, which is reported.
  Traffic traffic = {};                  ///< Among the devices of the nodes, numbered from 0 here.

  [[nodiscard]] std::int64_t gpus(const ClusterSpec& cluster) const { return nodes.devices(cluster); }
  /// "llama-7b with static", "permutation".
  [[nodiscard]] std::string what() const;
};

/// `planner: {knows: [speeds, faults]}`: what planners know of devices that differ. By default they know neither, and
/// plan for equal devices.
struct PlannerKnowledge {
  bool speeds = false;  ///< Speeds of the cluster's devices.
  bool faults = false;  ///< Faults in the planned step.
};

/// The checked values of one point of a study.
struct PointSpec {
  ClusterSpec cluster;
  Transformer model;
  std::shared_ptr<const DeviceProfile> profile;
  Mesh mesh;
  PipelineOptions pipeline;                ///< For a mesh with more than one stage.
  NodeList nodes;                          ///< Nodes of the main job.
  std::optional<NodeChoice> choice;        ///< How they were chosen; empty: the study states them.
  double choice_gap = 0;                   ///< ChosenNodes::gap.
  std::string placement{usual_placement};  ///< One of placement_names().
  ConnectionOptions connections;
  NicUse ring_nics = NicUse::own;   ///< Of exchanges around rings.
  ExpertOptions experts;            ///< For a model with experts.
  std::int64_t capacity = 8192;     ///< Tokens that one rank holds per micro-batch.
  bool capacity_is_chosen = false;  ///< Chosen by the device's memory (`auto`).
  /// How groups share their tokens; empty: adaptive (sim/engine/cut_planner.h).
  std::optional<TokenCut> cut = TokenCut::per_document;
  Recipe recipe;  ///< What the study states, and what its profile decides.
  Lengths lengths;
  BatchOptions batch;
  std::int64_t steps = 0;
  Grain grain = Grain::fluid;
  DeviceConditions conditions;  ///< For all devices, including those of other jobs.
  PlannerKnowledge knows;
  std::optional<FailureModel> failures;
  std::optional<UncertaintyOptions> uncertainty;
  std::optional<LoadingSpec> loading;  ///< Empty: data is always there.
  std::vector<BackgroundSpec> background;
  RunKind kind;                     ///< What its runs are, as far as errors of predictions depend on it.
  std::optional<RunErrors> errors;  ///< Of its predictions; empty where nothing published says them.
  std::uint64_t fingerprint = 0;    ///< Hash of the profile, the models and the lengths.

  /// "llama-7b on 1024 x A100-80GB, hdp 512 x tp 2, 50 steps of 32Mi tokens", and what runs beside it.
  [[nodiscard]] std::string setting() const;
};

/// The key `grain`: how fine the simulation is.
[[nodiscard]] KeyText grain_key();
/// The keys of `planner`: the knowledge of policies.
[[nodiscard]] const std::vector<KeyText>& planner_keys();

// ---- The parts of a point, for those who simulate it. Who computes with a point gets these and not the whole.

/// What the job computes: how its plans are lowered.
[[nodiscard]] LoweringOptions lowering_of(const PointSpec& spec);
/// Where the job runs.
[[nodiscard]] JobLayout layout_of(const PointSpec& spec);
/// What its plans have to fit into.
[[nodiscard]] DeviceRoom room_of(const PointSpec& spec);

/// The mean peak of the devices of some nodes, if `peak` is that of the profile's data sheet: it is multiplied by the
/// speed of a device that is faster than the profile's. A slower device still has the peak of its data sheet.
[[nodiscard]] FlopRate mean_peak(FlopRate peak, const ClusterSpec& cluster, const NodeList& nodes);

/// What could be changed so that a device has room, for a point whose `capacity: auto` finds none; may be empty.
using RoomHelp = std::function<std::string(const PointSpec&)>;

/// Reads one point of a study, whose defaults have been put in. Values of the study as a whole are left to
/// load_study().
/// All problems are reported, one of room with what `help` says; the result is empty if there is one.
[[nodiscard]] std::optional<PointSpec> read_point(const Value& study, Catalog& catalog, Diagnostics& diagnostics,
                                                  const RoomHelp& help = {});

}  // namespace hdpsim
