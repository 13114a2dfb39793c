#pragma once

#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/cluster/placement.h"
#include "sim/engine/timeline.h"
#include "sim/model/memory.h"
#include "sim/plan/connection_table.h"
#include "sim/plan/plan.h"
#include "sim/plan/work_model.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// Memory at the fullest moment of a step, on the fullest device and in its share of the host.
struct MemoryUse {
  Bytes device;
  Bytes host;
  /// The channels to other devices, on the device with most of them; a part of `device`. Empty if their size is not
  /// known.
  std::optional<Bytes> connections{};
  MemoryParts parts{};     ///< The parts of `device`; they sum to it.
  HdpRank rank{};          ///< The rank of the device; the first of several.
  std::int64_t stage = 0;  ///< The stage of the pipeline.
  Duration at{};           ///< Time since the start of the step.
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

/// Channels of rings. Those of this step's own connections count; in a real job those of earlier steps stay too.
struct ChannelMemory {
  const ConnectionTable* connections = nullptr;  ///< Connections of the plan; not null if `per_connection` is known.
  std::optional<Bytes> per_connection{};
};

/// What a plan's memory depends on besides the plan.
struct MemorySetting {
  const Transformer& model;
  Mesh mesh;
  Recipe recipe{};
  ExpertUse experts{};
  ChannelMemory channels{};
};

/// Memory of one device, and of its share of the host, at one moment. It changes evenly between two samples.
struct MemorySample {
  Duration at;  ///< Since the start of the step.
  Bytes device;
  Bytes host;
  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

/// Memory of the devices of one HDP rank through a step; they are alike.
struct RankMemory {
  HdpRank rank;
  std::vector<MemorySample> samples;
  friend bool operator==(const RankMemory&, const RankMemory&) = default;
};

/// The memory of all devices while the ranks of a plan run their micro-batches: the constant part, the activations of
/// the micro-batches in flight, of which resident_share_of_stage() is on the device and the rest in host memory, and
/// what the current backward needs besides them (DeviceMemory). The micro-batches in flight are counted along the order
/// in which each stage runs its passes (Pipeline). Of chunks in order (MicroBatch::continues), keys and values stay
/// from forward to backward also where these are recomputed, and a chunk's backward also holds the gradients of
/// all keys that it sees.
class PlanMemory {
 public:
  /// O(stages x sum of the groups' sizes). The pipeline and its plan must outlive the object.
  PlanMemory(const Pipeline& pipeline, const MemorySetting& setting);

  /// The memory of the fullest device.
  [[nodiscard]] const MemoryUse& use() const { return use_; }
  /// The `count` fullest ranks, by number. O(ranks).
  [[nodiscard]] std::vector<HdpRank> fullest(std::size_t count) const;
  /// Sets the time at which the fullest device is fullest, from the micro-batch's interval. `work` is the work model
  /// with the same recomputation.
  void place(const Timeline& timeline, const WorkModel& work);
  /// A rank through a step: three samples a micro-batch, where it begins, where forward turns into backward, and where
  /// it ends, and one at each end of the step. The turn is where the planner's work model puts it; begin and end are
  /// those of the whole group, so that a rank that is ahead of its group begins a little late. Where passes forward and
  /// backward are apart, it is the first stage, with the activations of each chunk from its forward pass to the last
  /// pass that needs them: two samples a chunk. O(n log n) for n micro-batches of the rank.
  [[nodiscard]] RankMemory over_time(HdpRank rank, const Timeline& timeline, const WorkModel& work) const;

 private:
  /// The memory of a micro-batch on a device of one stage.
  struct Load {
    MemoryParts peak;  ///< Memory at its peak with nothing else in flight.
    Bytes kept;        ///< Its activations on the device, with its keys and values.
    Bytes host;        ///< Its activations in host memory.
  };
  struct Stage {
    DeviceMemory device;
    std::vector<Load> loads;             ///< Those that differ: micro-batches of one size share theirs.
    std::vector<std::uint32_t> numbers;  ///< By micro-batch, which of them it has.
    [[nodiscard]] const Load& load(MicroBatchId id) const { return loads[numbers[id.index()]]; }
  };
  void add_stage(std::int64_t stage, const MemorySetting& setting);
  [[nodiscard]] Load load_on(std::int64_t stage, MicroBatchId id, const MemorySetting& setting,
                             std::optional<std::int64_t> expert_tokens) const;
  void add_worker(WorkerId worker);
  void add_moment(HdpRank rank, std::int64_t stage, std::optional<MicroBatchId> id, MemoryParts parts);
  [[nodiscard]] Bytes channels_of(HdpRank rank) const;
  [[nodiscard]] Duration turn(MicroBatchId id, const Timeline& timeline, const WorkModel& work) const;
  void sample_turns(RankMemory& memory, const Timeline& timeline, const WorkModel& work) const;
  void sample_flights(RankMemory& memory, const Timeline& timeline) const;

  const Pipeline& pipeline_;
  const Plan& plan_;
  ChannelMemory channels_;
  std::vector<Stage> stages_;
  std::vector<Bytes> peaks_;  ///< By rank.
  std::optional<MicroBatchId> fullest_;
  MemoryUse use_;
};

}  // namespace hdpsim
