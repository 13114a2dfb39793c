#include "sim/trace/batch_source.h"

#include "sim/base/check.h"

namespace hdpsim {
namespace {

class BatchLengths : public LengthSource {
 public:
  BatchLengths(const BatchSource& batches, std::int64_t steps) : batches_(batches), steps_(steps) {}

  [[nodiscard]] std::optional<Length> next() override {
    while (at_ == batch_.sequences.size()) {
      if (step_ + 1 == steps_) return std::nullopt;
      batch_ = batches_.step(++step_);
      at_ = 0;
    }
    return Length{batch_.sequences[at_++].tokens, step_};
  }

 private:
  const BatchSource& batches_;
  std::int64_t steps_;
  std::int64_t step_ = -1;
  Batch batch_;
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<LengthSource> make_batch_lengths(const BatchSource& batches, std::int64_t steps) {
  HDPSIM_CHECK(steps >= 0, "steps = {}", steps);
  return std::make_unique<BatchLengths>(batches, steps);
}

}  // namespace hdpsim
