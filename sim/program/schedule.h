#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program/pass_kind.h"

namespace hdpsim {

/// Which schedule a pipeline has. With one stage there is nothing to schedule, and both are ignored.
struct PipelineOptions {
  std::string_view schedule = "1f1b";  ///< One of pipeline_schedule_names(), whose texts last as long as the program.
  std::int64_t virtual_stages = 1;     ///< Chunks of layers on each stage, of a schedule that has this option.
};

/// A pass of one stage in the schedule's own terms: the micro-batch is known by its slot.
struct SlotPass {
  std::int64_t slot = 0;
  std::int64_t chunk = 0;
  PassKind kind = PassKind::whole;
  friend bool operator==(const SlotPass&, const SlotPass&) = default;
};

/// All that is particular to one pipeline schedule: how the model is cut into chunks of layers, which stage has which
/// chunks, and in which order each stage runs the passes of the micro-batches. Everything else (messages, activations in
/// flight, memory, the largest capacity, timelines, what the executor runs) is derived from these answers.
///
/// Micro-batches stand in slots 0, 1, ... in the order of the plan. Contract of an implementation:
///  - every slot goes forward through chunks 0, 1, ..., chunks() - 1 and backward in the reverse order, with one pass of
///    each of kinds() a chunk;
///  - if every stage runs its passes in its order and waits for the pass of the chunk before (forward) or behind
///    (backward), no stage waits for ever. The same then holds for any part of the slots, so that ranks which lack some
///    micro-batches may leave them out.
/// Immutable: the same question has the same answer.
class Schedule {
 public:
  explicit Schedule(std::int64_t stages) : stages_(stages) {}
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  virtual ~Schedule() = default;

  [[nodiscard]] std::int64_t stages() const { return stages_; }
  /// Chunks that the layers of the model are dealt to (layers_of_chunk), each of which needs a layer.
  [[nodiscard]] virtual std::int64_t chunks() const { return stages_; }
  /// Copies of the model in one pipeline, one or two. The micro-batch of a slot goes through copy slot mod copies().
  [[nodiscard]] virtual std::int64_t copies() const { return 1; }
  /// Which stage has a chunk of a copy. The two copies of a chunk lie on two stages, which have all chunks in common.
  [[nodiscard]] virtual std::int64_t stage_of(std::int64_t chunk, std::int64_t copy) const = 0;
  /// The kinds of passes of a micro-batch through a chunk, forward first.
  [[nodiscard]] virtual std::span<const PassKind> kinds() const;
  /// The passes of a stage in the order of execution, of a pipeline of `slots` micro-batches. O(passes of the stage).
  [[nodiscard]] virtual std::vector<SlotPass> order(std::int64_t stage, std::int64_t slots) const = 0;

 private:
  std::int64_t stages_;
};

/// What is known of a schedule before a pipeline has it. The table of them is in sim/program/impl/schedules.h.
struct ScheduleEntry {
  std::string_view name;
  std::unique_ptr<const Schedule> (*make)(std::int64_t stages, std::int64_t virtual_stages);
  bool takes_virtual_stages = false;  ///< It needs 2 or more of them; others have none.
  std::int64_t tuned_with = 1;        ///< Virtual stages with which `tune` tries it by default; 0: not at all.
  std::int64_t stages_multiple = 1;   ///< The stages of its pipelines are a multiple of this.
};
/// In the order in which users are told of them.
[[nodiscard]] std::span<const ScheduleEntry> pipeline_schedules();
/// `1f1b`, `gpipe`, ...: their names.
[[nodiscard]] const std::vector<std::string>& pipeline_schedule_names();
/// Null if there is none of this name.
[[nodiscard]] const ScheduleEntry* find_schedule(std::string_view name);

/// The schedule of a pipeline of so many stages; of one stage, which runs whole micro-batches, whatever the options say.
/// The options must name a schedule that knows such a pipeline (checked).
[[nodiscard]] std::shared_ptr<const Schedule> make_schedule(const PipelineOptions& options, std::int64_t stages);

}  // namespace hdpsim
