#include <algorithm>
#include <array>

#include "sim/program/impl/schedules.h"
#include "sim/program/impl/split_order.h"

namespace hdpsim {
namespace {

/// The order of one stage, in the phases of the authors' implementation (github.com/deepseek-ai/DualPipe).
/// Micro-batches enter at both ends of the pipeline. The stage is `distance` stages away from its nearer end:
/// micro-batches that enter there are `near`, the others `far`. There are `before` stages between the stage and the
/// middle of the pipeline.
class DualPipeOrder {
 public:
  DualPipeOrder(std::int64_t stages, std::int64_t stage, std::int64_t slots)
      : stages_(stages), stage_(stage), slots_(slots), order_(slots) {}

  std::vector<SlotPass> take() {
    const std::int64_t distance = std::min(stage_, stages_ - 1 - stage_);
    const std::int64_t before = stages_ / 2 - 1 - distance;
    // Micro-batches from each end. The phases need at least p; the passes of missing micro-batches are left out.
    const std::int64_t each = std::max((slots_ + 1) / 2, stages_);
    warm_up(distance, before);
    for (std::int64_t i = 0; i < each - stages_ + distance + 1; ++i) {
      forward_and_backward(near, far);
      forward_and_backward(far, near);
    }
    cool_down(distance, before);
    return order_.take();
  }

 private:
  static constexpr std::size_t near = 0;
  static constexpr std::size_t far = 1;

  void warm_up(std::int64_t distance, std::int64_t before) {
    for (std::int64_t i = 0; i < 2 * before; ++i) forward(near);
    for (std::int64_t i = 0; i <= distance; ++i) {
      forward(near);
      forward(far);
    }
    for (std::int64_t i = 0; i < before; ++i) {
      backward(far);
      forward(far);
    }
  }

  // After the last forward pass, the later half of the input gradients puts off its weight gradients until the stage
  // could otherwise only wait for gradients from the far end.
  void cool_down(std::int64_t distance, std::int64_t before) {
    for (std::int64_t i = 0; i < before; ++i) {
      backward(far);
      forward_and_backward(far, near);
    }
    for (std::int64_t i = 0; i < 2 * (distance + 1); ++i) {
      const std::size_t end = i % 2 == 0 ? far : near;
      i <= distance ? backward(end) : input_gradient(end);
    }
    for (std::int64_t i = 0; i < before; ++i) {
      order_.weight_gradient();
      input_gradient(near);
    }
    order_.weight_gradients_but(0);
  }

  [[nodiscard]] bool is_from_first(std::size_t end) const { return (stage_ < stages_ / 2) == (end == near); }
  [[nodiscard]] std::int64_t chunk_of(std::size_t end) const {
    return is_from_first(end) ? stage_ : stages_ - 1 - stage_;
  }
  /// The slot of the next micro-batch of an end. Micro-batches from the first stage have even slots, those from the
  /// last stage odd slots.
  [[nodiscard]] std::int64_t next_slot(std::size_t end, std::array<std::int64_t, 2>& counts) const {
    return 2 * counts[end]++ + (is_from_first(end) ? 0 : 1);
  }
  void forward(std::size_t end) { order_.forward(next_slot(end, forwards_), chunk_of(end)); }
  void input_gradient(std::size_t end) { order_.input_gradient(next_slot(end, gradients_), chunk_of(end)); }
  void backward(std::size_t end) {
    input_gradient(end);
    order_.weight_gradient();
  }
  /// A forward pass from one end and a backward pass from another, at the same time.
  void forward_and_backward(std::size_t forward, std::size_t backwards) {
    order_.forward_beside_next(next_slot(forward, forwards_), chunk_of(forward));
    backward(backwards);
  }

  std::int64_t stages_;
  std::int64_t stage_;
  std::int64_t slots_;
  std::array<std::int64_t, 2> forwards_{};   // by end
  std::array<std::int64_t, 2> gradients_{};  // by end
  SplitOrder order_;
};

/// DeepSeek-AI 2024, "DeepSeek-V3 Technical Report" (arXiv 2412.19437), section 3.2.1: half of the micro-batches go
/// down the stages and the other half up, each half through its own copy of the model, so that stage s of p has chunks
/// s and p - 1 - s. Every stage holds the activations of p + 1 chunks and twice the parameters.
///
/// The report's bubble is (p / 2 - 1)(F&B + B - 3 W), where F&B is a forward and a backward pass that run at the same
/// time and end together, so that each hides the other's all-to-alls of experts. Here a worker still runs one pass
/// after another and sends each result when its pass ends, so that the bubble is (p / 2 - 1)(F + B - 2 W): that of the
/// report for F&B = F + W. Of the overlap only the all-to-alls are modelled (Pipeline::beside).
class DualPipe final : public Schedule {
 public:
  using Schedule::Schedule;
  [[nodiscard]] std::int64_t copies() const override { return 2; }
  [[nodiscard]] std::int64_t stage_of(std::int64_t chunk, std::int64_t copy) const override {
    return copy == 0 ? chunk : stages() - 1 - chunk;
  }
  [[nodiscard]] std::span<const PassKind> kinds() const override { return split_backward; }
  [[nodiscard]] std::vector<SlotPass> order(std::int64_t stage, std::int64_t slots) const override {
    return DualPipeOrder(stages(), stage, slots).take();
  }
};

}  // namespace

std::unique_ptr<const Schedule> make_dualpipe(std::int64_t stages, std::int64_t /*virtual_stages*/) {
  return std::make_unique<DualPipe>(stages);
}

}  // namespace hdpsim
