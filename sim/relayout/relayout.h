#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace hdpsim {

/// How many times longer the kernels of a device take, by device; others take 1.
using DeviceSlowdowns = std::map<std::int64_t, double>;

/// Devices that share the layers of a stage as a tensor-parallel group.
struct TensorGroup {
  std::vector<std::int64_t> devices;
  std::int64_t cut = 0;  ///< It has tp / 2^cut devices.
  /// How many times longer a layer takes than on tp devices that are not slow; 1 below the threshold.
  double slowdown = 1;
  friend bool operator==(const TensorGroup&, const TensorGroup&) = default;
};

struct StageLayout {
  TensorGroup group;
  std::int64_t layers = 0;
  friend bool operator==(const StageLayout&, const StageLayout&) = default;
};

/// A pipeline with all layers of the model, first stage first.
struct PipelineLayout {
  std::vector<StageLayout> stages;
  std::int64_t micro_batches = 0;
  /// The largest layers x slowdown of a stage: how long its slowest stage works on a micro-batch, in layers.
  [[nodiscard]] double slowest_stage() const;
  friend bool operator==(const PipelineLayout&, const PipelineLayout&) = default;
};

/// What a job's devices do: pipelines of unequal stages, groups, layers and micro-batches.
struct Relayout {
  std::vector<PipelineLayout> pipelines;
  std::vector<std::int64_t> suspended;  ///< Devices that do nothing.
  bool is_exhaustive = true;            ///< False: there were more ways to share slow groups than are tried.
  /// The largest slowest_stage() x micro-batches of a pipeline: the value of the integer programs.
  [[nodiscard]] double objective() const;
};

/// What a tensor-parallel group of tp / 2^cut devices costs.
struct TensorCut {
  double slowdown = 1;  ///< Of a layer, in time of a layer on tp devices.
  double kernels = 1;   ///< The share of that time in kernels, which a slow device of the group delays.
  /// Divides what such a group is worth when nodes are divided; 1: as much as it computes.
  double weight = 1;

  /// Of a layer where the slowest device of the group takes so many times longer.
  [[nodiscard]] double with_slowest(double device) const { return slowdown * (1 + kernels * (device - 1)); }
};

/// A job with a uniform mesh, and what other layouts of it cost.
struct RelayoutJob {
  std::int64_t tp = 1;
  std::int64_t pipelines = 1;
  std::int64_t stages = 1;  ///< Of each pipeline.
  std::int64_t layers = 1;
  std::int64_t micro_batches = 1;  ///< Of a step, all alike.
  std::int64_t devices_per_node = 8;
  /// The devices of stage s of pipeline p at p x stages + s; each group is in one node.
  std::vector<std::vector<std::int64_t>> groups;
  std::vector<TensorCut> cuts;  ///< By cut, from the whole group on.
  double threshold = 1.2;       ///< A device that is less slow counts as 1.

  double memory = 0;  ///< Bytes of a device, or another unit.
  /// Of each device of a group: a layer, with the activations of so many micro-batches; what the first and the last
  /// stage have besides; and what all have.
  std::function<double(std::int64_t cut, std::int64_t in_flight)> layer_memory;
  std::function<double(std::int64_t cut)> first_memory;
  std::function<double(std::int64_t cut)> last_memory;
  std::function<double(std::int64_t cut)> extra_memory;

  /// Seconds of a step of a pipeline; empty: layouts are compared by their objective alone.
  std::function<double(const PipelineLayout&)> seconds;
};

/// The layout of a job around its slow devices, as Malleus plans it (Li et al. 2024, arXiv 2410.13333, and its
/// published code):
///
/// * Every node with slow devices is divided into groups (divided_node()); devices left over are suspended.
/// * If there are as many groups as before, pipelines keep their number of stages. Otherwise each may have from one
/// less
///   than the mean to one more than the mean and the groups left over; those without slow groups have equally many, but
///   for one.
/// * The slow groups of a pipeline are its first stages, the slowest first. All ways to share them among the pipelines
///   are tried, but for those that differ in names only.
/// * Layers are dealt to the stages of a pipeline, and micro-batches to pipelines, so that the maximum is the least
///   possible (min_max_split()); a stage has what its memory holds, and each pipeline as many micro-batches as stages.
/// * Of the ten layouts of the least objective, the one of the least seconds is taken: the objective knows nothing of
///   how pipelines fill and drain.
/// * Groups that are not slow stay in their pipeline where they can.
///
/// Besides what is published, slow groups may be suspended, the slowest first: where one is so slow that a stage of one
/// layer delays all. Empty if no layout fits in memory. O(slow groups x candidates x stages), at most `most_candidates`
/// for each number of suspended groups.
[[nodiscard]] std::optional<Relayout> relaid(const RelayoutJob& job, const DeviceSlowdowns& slow);
inline constexpr std::int64_t most_candidates = 20'000;

/// The layout of the job's uniform mesh, as even as its layers are.
[[nodiscard]] Relayout uniform_layout(const RelayoutJob& job);

/// The same layout with devices of other speeds.
[[nodiscard]] Relayout on_devices(Relayout layout, const RelayoutJob& job, const DeviceSlowdowns& slow);

/// Seconds of a step: those of the slowest pipeline by RelayoutJob::seconds, which must be there.
[[nodiscard]] double seconds_of(const Relayout& layout, const RelayoutJob& job);

}  // namespace hdpsim
