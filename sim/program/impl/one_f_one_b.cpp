#include <algorithm>

#include "sim/program/impl/in_turn.h"
#include "sim/program/impl/schedules.h"

namespace hdpsim {
namespace {

/// PipeDream-Flush (Narayanan et al. 2021): stage s of p begins with p - 1 - s forward passes, so that it holds p - s
/// micro-batches.
class OneForwardOneBackward final : public Schedule {
 public:
  using Schedule::Schedule;
  [[nodiscard]] std::int64_t stage_of(std::int64_t chunk, std::int64_t /*copy*/) const override { return chunk; }
  [[nodiscard]] std::vector<SlotPass> order(std::int64_t stage, std::int64_t slots) const override {
    return in_turn_on(stage, stages() - 1 - stage, slots);
  }
  // ChunkFlow's state-aware 1F1B (Yuan et al. 2025, arXiv 2503.02356): a stage runs forward passes only until the next
  // backward pass is possible, those of a chain and of the p - 1 - s slots behind it. Where nothing continues, this is
  // 1F1B.
  [[nodiscard]] std::vector<SlotPass> order_of_chains(std::int64_t stage,
                                                      std::span<const std::int64_t> ends) const override {
    const std::int64_t slots = std::ssize(ends);
    std::vector<SlotPass> passes;
    std::int64_t forward = 0;
    for (std::int64_t first = 0; first < slots;) {
      const std::int64_t last = ends[static_cast<std::size_t>(first)];
      const std::int64_t before_backward = std::min(slots, last + stages() - stage);
      for (; forward < before_backward; ++forward) passes.push_back({forward, stage, PassKind::forward});
      for (std::int64_t slot = last; slot >= first; --slot) passes.push_back({slot, stage, PassKind::backward});
      first = last + 1;
    }
    return passes;
  }
};

}  // namespace

std::unique_ptr<const Schedule> make_one_f_one_b(std::int64_t stages, std::int64_t /*virtual_stages*/) {
  return std::make_unique<OneForwardOneBackward>(stages);
}

}  // namespace hdpsim
