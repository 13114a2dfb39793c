#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/pass_kind.h"

namespace hdpsim {

/// Which messages between stages run beside passes. A stage sends the others before it begins its next pass, as
/// Megatron-LM does without `overlap_p2p_comm`, which it has for chunks of stages alone.
enum class MessageOverlap : std::uint8_t {
  always,
  interleaved,  ///< Under schedules with virtual stages.
  never,
};

/// How a model's layers are dealt to the chunks of its pipeline: evenly, what is left over one each to the first
/// chunks, but for what is stated here. Counting the embedding or the loss as a layer makes the first or the last chunk
/// one layer shorter, which may leave it none (Megatron-LM's account_for_embedding_in_pipeline_split and
/// account_for_loss_in_pipeline_split).
struct LayerSplit {
  bool counts_embedding = false;
  bool counts_loss = false;
  std::int64_t first_stage = 0;           ///< Layers of the first stage; 0: as many as the others.
  std::int64_t last_stage = 0;            ///< Layers of the last stage.
  std::vector<std::int64_t> layout = {};  ///< Layers of every chunk (LayerLayout), in place of all that; empty: none.
  [[nodiscard]] bool is_even() const { return *this == LayerSplit{}; }
  friend bool operator==(const LayerSplit&, const LayerSplit&) = default;
};

/// The schedule of a pipeline. With one stage there is nothing to schedule, and every schedule gives the same order.
struct PipelineOptions {
  std::string_view schedule = "1f1b";  ///< One of pipeline_schedule_names(), whose strings live as long as the process.
  std::int64_t virtual_stages = 1;     ///< Chunks of layers per stage, for a schedule that has this option.
  MessageOverlap message_overlap = MessageOverlap::always;
  LayerSplit split = {};

  [[nodiscard]] bool overlaps_messages() const {
    return message_overlap == MessageOverlap::always ||
           (message_overlap == MessageOverlap::interleaved && virtual_stages > 1);
  }
};

/// A pass of one stage as a schedule sees it: its slot identifies the micro-batch.
struct SlotPass {
  std::int64_t slot = 0;
  std::int64_t chunk = 0;
  PassKind kind = PassKind::whole;
  /// A forward pass that runs at the same time as the next pass of the order, a backward pass of another micro-batch:
  /// kernels of one beside the all-to-alls of the other's experts.
  bool beside_next = false;
  friend bool operator==(const SlotPass&, const SlotPass&) = default;
};

/// Everything that is specific to one pipeline schedule: how the model is cut into chunks of layers, which stage has
/// which chunks, and in which order each stage runs the passes of the micro-batches. Everything else (messages,
/// activations in flight, memory, the largest capacity, timelines, what the executor runs) is derived from it.
///
/// Micro-batches have slots 0, 1, ... in the order of the plan. Contract of an implementation:
///  - every slot goes forward through chunks 0, 1, ..., chunks() - 1 and backward in the reverse order, with one pass
///    of each of kinds() per chunk;
///  - if every stage runs its passes in its order and waits for the pass of the previous chunk (forward) or of the next
///    chunk (backward), there is no deadlock. The same then holds for any subset of the slots, so that ranks may leave
///    out micro-batches that they do not have.
/// Immutable: equal calls return equal results.
class Schedule {
 public:
  explicit Schedule(std::int64_t stages) : stages_(stages) {}
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  virtual ~Schedule() = default;

  [[nodiscard]] std::int64_t stages() const { return stages_; }
  /// The number of chunks over which the layers of the model are divided (LayerDeal).
  [[nodiscard]] virtual std::int64_t chunks() const { return stages_; }
  /// Copies of the model in one pipeline: one or two. The micro-batch of a slot goes through copy slot mod copies().
  [[nodiscard]] virtual std::int64_t copies() const { return 1; }
  /// The stage that has a chunk of a copy. The two copies of a chunk are on two stages, which hold the same chunks.
  [[nodiscard]] virtual std::int64_t stage_of(std::int64_t chunk, std::int64_t copy) const = 0;
  /// The kinds of passes of a micro-batch through a chunk, forward first.
  [[nodiscard]] virtual std::span<const PassKind> kinds() const;
  /// The passes of a stage in the order of execution, for `slots` micro-batches. O(passes of the stage).
  [[nodiscard]] virtual std::vector<SlotPass> order(std::int64_t stage, std::int64_t slots) const = 0;
  /// The same for one rank, some of whose micro-batches continue others (MicroBatch::continues): `ends` has for every
  /// slot the last one of its chain. Chains go forward in order and backward in reverse. Only of a schedule whose entry
  /// says that it runs chunks in order (checked).
  [[nodiscard]] virtual std::vector<SlotPass> order_of_chains(std::int64_t stage,
                                                              std::span<const std::int64_t> ends) const;

 private:
  std::int64_t stages_;
};

/// The properties of a schedule that do not depend on the pipeline. The table of all schedules is in
/// sim/program/impl/schedules.h.
struct ScheduleEntry {
  std::string_view name;
  std::unique_ptr<const Schedule> (*make)(std::int64_t stages, std::int64_t virtual_stages);
  bool takes_virtual_stages = false;  ///< It needs 2 or more virtual stages; other schedules take only 1.
  std::int64_t tuned_with = 1;        ///< Virtual stages with which `tune` tries it by default; 0: not at all.
  std::int64_t stages_multiple = 1;   ///< The number of stages must be a multiple of this.
  bool runs_chunks_in_order = false;  ///< It has an order_of_chains().
};
/// All schedules, in the order in which users see them.
[[nodiscard]] std::span<const ScheduleEntry> pipeline_schedules();
/// Their names: `1f1b`, `gpipe`, ...
[[nodiscard]] const std::vector<std::string>& pipeline_schedule_names();
/// The schedule of this name; null if there is none.
[[nodiscard]] const ScheduleEntry* find_schedule(std::string_view name);

/// The schedule of a pipeline of `stages` stages. One stage runs whole micro-batches, whatever schedule the options
/// name. The options must name a schedule that supports such a pipeline (checked).
[[nodiscard]] std::shared_ptr<const Schedule> make_schedule(const PipelineOptions& options, std::int64_t stages);

/// The schedule of a plan whose micro-batches continue others. One stage has passes forward and backward, too, whatever
/// schedule the options name; on several, it must be one that runs chunks in order (checked).
[[nodiscard]] std::shared_ptr<const Schedule> make_schedule_of_chains(const PipelineOptions& options,
                                                                      std::int64_t stages);

}  // namespace hdpsim
