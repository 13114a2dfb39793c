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
  /// Of `device` on the device with most of it: channels to others. Nothing if it is not known what they hold.
  std::optional<Bytes> connections{};
  MemoryParts parts{};     ///< Of `device`: sums to it.
  HdpRank rank{};          ///< Whose device it is; the first of several.
  std::int64_t stage = 0;  ///< Of the pipeline.
  Duration at{};           ///< Since the start of the step.
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

/// Channels of rings: those of this step's own connections; in a real job those of earlier steps stay too.
struct ChannelMemory {
  const ConnectionTable* connections = nullptr;  ///< Of the plan; not null if `per_connection` is known.
  std::optional<Bytes> per_connection{};
};

/// What a plan's memory depends on besides the plan.
struct MemorySetting {
  const Transformer& model;
  Mesh mesh;
  MemoryRules rules{};
  ChannelMemory channels{};
};

/// One device's memory at one moment, its host's share beside it. Between two samples it changes evenly.
struct MemorySample {
  Duration at;  ///< Since the start of the step.
  Bytes device;
  Bytes host;
  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

/// The devices of one HDP rank through a step: they are alike.
struct RankMemory {
  HdpRank rank;
  std::vector<MemorySample> samples;
  friend bool operator==(const RankMemory&, const RankMemory&) = default;
};

/// The memory of all devices while the ranks of a plan run their micro-batches: what stays, the activations of the
/// micro-batches in flight, of which resident_share() is on the device and the rest in host memory, and what the
/// backward at work needs beside them (DeviceMemory). What is in flight is counted along the order in which each stage
/// runs its passes (Pipeline).
class PlanMemory {
 public:
  /// O(stages x sum of the groups' sizes). The pipeline and its plan must outlive the object.
  PlanMemory(const Pipeline& pipeline, const MemorySetting& setting);

  /// The fullest device of all.
  [[nodiscard]] const MemoryUse& use() const { return use_; }
  /// The `count` fullest ranks, by number. O(ranks).
  [[nodiscard]] std::vector<HdpRank> fullest(std::size_t count) const;
  /// Sets when the fullest device is fullest, by the micro-batch's interval. `work` is that of the same recomputation.
  void place(const Timeline& timeline, const WorkModel& work);
  /// A rank through a step: three samples a micro-batch, where it begins, where forward turns into backward, and where
  /// it ends, and one at each end of the step. The turn is where the planner's work model puts it; begin and end are
  /// those of the whole group, so that a rank that is ahead of its group begins a little late. Of a pipeline it is the
  /// first stage, with the activations of each chunk from its forward pass to the last pass that needs them: two samples
  /// a chunk.
  /// O(n log n) for n micro-batches of the rank.
  [[nodiscard]] RankMemory over_time(HdpRank rank, const Timeline& timeline, const WorkModel& work) const;

 private:
  /// A micro-batch on a device of one stage.
  struct Load {
    MemoryParts peak;  ///< With nothing else in flight.
    Bytes kept;        ///< Of its activations, on the device.
    Bytes host;        ///< The rest of them.
  };
  struct Stage {
    DeviceMemory device;
    std::vector<Load> loads;  ///< By micro-batch.
  };
  void add_stage(std::int64_t stage, const MemorySetting& setting);
  void add_worker(WorkerId worker);
  void add_moment(HdpRank rank, std::int64_t stage, std::optional<MicroBatchId> id, MemoryParts parts);
  [[nodiscard]] Bytes channels_of(HdpRank rank) const;
  [[nodiscard]] Duration turn(MicroBatchId id, const Timeline& timeline, const WorkModel& work) const;
  void sample_turns(RankMemory& memory, const Timeline& timeline, const WorkModel& work) const;
  void sample_flights(RankMemory& memory, const Timeline& timeline) const;

  const Pipeline& pipeline_;
  const Plan& plan_;
  ChannelMemory channels_;
  double linear_again_;  ///< Share of forward's products that backward does again.
  bool attends_again_;
  std::vector<Stage> stages_;
  std::vector<Bytes> peaks_;  ///< By rank.
  std::optional<MicroBatchId> fullest_;
  MemoryUse use_;
};

}  // namespace hdpsim
