#include <array>

#include "sim/program/impl/schedules.h"
#include "sim/program/impl/split_order.h"

namespace hdpsim {
namespace {

/// The order of one stage of ZB-V if all passes take the same time, one tick.
///
/// The model goes down the stages and up again, so that stage s of p has chunks s ("down") and 2 p - 1 - s ("up").
///  - Stage s begins at tick s with 2 p forward passes: 2 (p - s) - 1 down, until the first micro-batch comes back;
///    this one up; then one down and one up in turn until its gradient arrives, at tick 2 p + s.
///  - Rounds of three passes follow: an input gradient, its weight gradient, and a forward pass in the memory that
///    these have freed. Gradients are those of the up chunk in the first p - s rounds, after which the first gradient
///    comes back; then those of the down and the up chunk in turn. Forward passes go up in the first p - s - 1 rounds,
///    then down and up in turn, so that each result arrives one round before the next stage needs it.
///  - When no forward pass is left, memory no longer matters, and 2 s weight gradients are put off until stage s has no
///    other gradient to wait for, so that no gradient waits for another stage's weight gradients.
/// With at least 2 p - 1 micro-batches, no stage is idle between its first and its last pass, and none ever holds more
/// than 2 p chunks.
class ZbVOrder {
 public:
  ZbVOrder(std::int64_t stages, std::int64_t stage, std::int64_t slots)
      : stages_(stages), stage_(stage), slots_(slots), order_(slots) {}

  std::vector<SlotPass> take() {
    for (std::int64_t i = 0; i < 2 * (stages_ - stage_) - 1; ++i) forward(down);
    forward(up);
    for (std::int64_t i = 0; i < stage_; ++i) {
      forward(down);
      forward(up);
    }
    for (std::int64_t round = 0; gradients_[down] < slots_ || gradients_[up] < slots_; ++round) {
      gradient(leg_of(round, stages_ - stage_));
      order_.weight_gradients_but(forwards_[down] < slots_ || forwards_[up] < slots_ ? 0 : 2 * stage_);
      forward(leg_of(round, stages_ - stage_ - 1));
    }
    order_.weight_gradients_but(0);
    return order_.take();
  }

 private:
  static constexpr std::size_t down = 0;
  static constexpr std::size_t up = 1;

  /// Up in the first `rounds_up` rounds, then down and up in turn.
  static std::size_t leg_of(std::int64_t round, std::int64_t rounds_up) {
    return round >= rounds_up && (round - rounds_up) % 2 == 0 ? down : up;
  }
  [[nodiscard]] std::int64_t chunk_of(std::size_t leg) const { return leg == down ? stage_ : 2 * stages_ - 1 - stage_; }

  void forward(std::size_t leg) { order_.forward(forwards_[leg]++, chunk_of(leg)); }
  void gradient(std::size_t leg) {
    const std::int64_t slot = gradients_[leg]++;
    if (slot < slots_) order_.input_gradient(slot, chunk_of(leg));  // what is missing must not be put off
  }

  std::int64_t stages_;
  std::int64_t stage_;
  std::int64_t slots_;
  std::array<std::int64_t, 2> forwards_{};   // by leg
  std::array<std::int64_t, 2> gradients_{};  // by leg
  SplitOrder order_;
};

/// Qi et al. 2023, "Zero Bubble Pipeline Parallelism": two chunks per stage, laid out as a V, so that the first stage
/// has the embedding, the head and the loss, and a split backward. If forward passes, input gradients and weight
/// gradients take the same time, no stage is idle, with the activations of p micro-batches on every stage, like the
/// first stage of 1F1B.
class ZeroBubbleV final : public Schedule {
 public:
  using Schedule::Schedule;
  [[nodiscard]] std::int64_t chunks() const override { return 2 * stages(); }
  [[nodiscard]] std::int64_t stage_of(std::int64_t chunk, std::int64_t /*copy*/) const override {
    return chunk < stages() ? chunk : 2 * stages() - 1 - chunk;
  }
  [[nodiscard]] std::span<const PassKind> kinds() const override { return split_backward; }
  [[nodiscard]] std::vector<SlotPass> order(std::int64_t stage, std::int64_t slots) const override {
    return ZbVOrder(stages(), stage, slots).take();
  }
};

}  // namespace

std::unique_ptr<const Schedule> make_zb_v(std::int64_t stages, std::int64_t /*virtual_stages*/) {
  return std::make_unique<ZeroBubbleV>(stages);
}

}  // namespace hdpsim
