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
};

}  // namespace

std::unique_ptr<const Schedule> make_one_f_one_b(std::int64_t stages, std::int64_t /*virtual_stages*/) {
  return std::make_unique<OneForwardOneBackward>(stages);
}

}  // namespace hdpsim
