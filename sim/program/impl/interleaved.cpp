#include "sim/base/check.h"
#include "sim/base/division.h"
#include "sim/program/impl/in_turn.h"
#include "sim/program/impl/schedules.h"

namespace hdpsim {
namespace {

/// Narayanan et al. 2021 (Megatron-LM): each of p stages has v chunks, p apart, and p micro-batches go through one
/// chunk of a stage before they go through the next. Stage s holds the activations of 2 (p - s - 1) + (v - 1) p + 1
/// chunks.
///
/// With `combines` a stage runs each forward pass at the same time as the backward pass behind it, and one forward pass
/// more before the first of them, so that the two are never of one micro-batch and chunk (Megatron-Core,
/// overlap_moe_expert_parallel_comm: pipeline_parallel/schedules.py, get_pp_rank_microbatches, and combined_1f1b.py).
class Interleaved final : public Schedule {
 public:
  Interleaved(std::int64_t stages, std::int64_t virtual_stages, bool combines)
      : Schedule(stages), turns_(virtual_stages), combines_(combines) {
    HDPSIM_CHECK(virtual_stages > 1, "interleaved with {} chunks a stage", virtual_stages);
  }
  [[nodiscard]] std::int64_t chunks() const override { return stages() * turns_; }
  [[nodiscard]] std::int64_t stage_of(std::int64_t chunk, std::int64_t /*copy*/) const override {
    return chunk % stages();
  }
  [[nodiscard]] std::vector<SlotPass> order(std::int64_t stage, std::int64_t slots) const override {
    const std::int64_t warm_up = 2 * (stages() - 1 - stage) + (turns_ - 1) * stages() + (combines_ ? 1 : 0);
    const std::int64_t count = rounded_up(slots, stages()) * turns_;
    std::vector<SlotPass> passes;
    // The last group may have fewer than p micro-batches; the missing ones keep their place in the order.
    const auto add = [&](std::int64_t i, bool forward) {
      const std::int64_t block = i / stages();
      const std::int64_t turn = forward ? block % turns_ : turns_ - 1 - block % turns_;
      const std::int64_t slot = block / turns_ * stages() + i % stages();
      if (slot >= slots) return;
      const PassKind kind = forward ? PassKind::forward : PassKind::backward;
      passes.push_back({slot, turn * stages() + stage, kind, combines_ && forward && i >= warm_up});
    };
    in_turn(
        warm_up, count, [&](std::int64_t i) { add(i, true); }, [&](std::int64_t i) { add(i, false); });
    return passes;
  }

 private:
  std::int64_t turns_;  ///< Chunks per stage.
  bool combines_;
};

}  // namespace

std::unique_ptr<const Schedule> make_interleaved(std::int64_t stages, std::int64_t virtual_stages) {
  return std::make_unique<Interleaved>(stages, virtual_stages, false);
}

std::unique_ptr<const Schedule> make_combined_1f1b(std::int64_t stages, std::int64_t virtual_stages) {
  return std::make_unique<Interleaved>(stages, virtual_stages, true);
}

}  // namespace hdpsim
