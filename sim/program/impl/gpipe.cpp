#include "sim/program/impl/in_turn.h"
#include "sim/program/impl/schedules.h"

namespace hdpsim {
namespace {

/// Huang et al. 2019: all forward passes, then all backward passes.
class GPipe final : public Schedule {
 public:
  using Schedule::Schedule;
  [[nodiscard]] std::int64_t stage_of(std::int64_t chunk, std::int64_t /*copy*/) const override { return chunk; }
  [[nodiscard]] std::vector<SlotPass> order(std::int64_t stage, std::int64_t slots) const override {
    return in_turn_on(stage, slots, slots);
  }
};

}  // namespace

std::unique_ptr<const Schedule> make_gpipe(std::int64_t stages, std::int64_t /*virtual_stages*/) {
  return std::make_unique<GPipe>(stages);
}

}  // namespace hdpsim
