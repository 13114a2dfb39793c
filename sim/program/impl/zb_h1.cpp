#include "sim/program/impl/in_turn.h"
#include "sim/program/impl/schedules.h"

namespace hdpsim {
namespace {

/// Qi et al. 2023: 1F1B with a split backward. On stage s the weight gradients run s micro-batches behind the input
/// gradients, so that every stage keeps the activations of p micro-batches, like the first stage of 1F1B.
class ZeroBubbleH1 final : public Schedule {
 public:
  using Schedule::Schedule;
  [[nodiscard]] std::int64_t stage_of(std::int64_t chunk, std::int64_t /*copy*/) const override { return chunk; }
  [[nodiscard]] std::span<const PassKind> kinds() const override { return split_backward; }
  [[nodiscard]] std::vector<SlotPass> order(std::int64_t stage, std::int64_t slots) const override {
    std::vector<SlotPass> passes;
    const auto add_weights = [&](std::int64_t i) {
      if (i >= 0) passes.push_back({i, stage, PassKind::weight_gradient});
    };
    in_turn(
        stages() - 1 - stage, slots,
        [&](std::int64_t i) {
          passes.push_back({i, stage, PassKind::forward});
        },
        [&](std::int64_t i) {
          passes.push_back({i, stage, PassKind::input_gradient});
          add_weights(i - stage);
        });
    for (std::int64_t i = slots; i < slots + stage; ++i) add_weights(i - stage);
    return passes;
  }
};

}  // namespace

std::unique_ptr<const Schedule> make_zb_h1(std::int64_t stages, std::int64_t /*virtual_stages*/) {
  return std::make_unique<ZeroBubbleH1>(stages);
}

}  // namespace hdpsim
