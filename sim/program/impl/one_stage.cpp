#include <array>

#include "sim/program/impl/schedules.h"

namespace hdpsim {
namespace {

/// Each micro-batch runs forward and backward in one pass.
class OneStage final : public Schedule {
 public:
  OneStage() : Schedule(1) {}
  [[nodiscard]] std::int64_t stage_of(std::int64_t /*chunk*/, std::int64_t /*copy*/) const override { return 0; }
  [[nodiscard]] std::span<const PassKind> kinds() const override {
    static constexpr std::array whole = {PassKind::whole};
    return whole;
  }
  [[nodiscard]] std::vector<SlotPass> order(std::int64_t /*stage*/, std::int64_t slots) const override {
    std::vector<SlotPass> passes;
    for (std::int64_t slot = 0; slot < slots; ++slot) passes.push_back({slot, 0, PassKind::whole});
    return passes;
  }
};

}  // namespace

std::unique_ptr<const Schedule> make_one_stage() {
  return std::make_unique<OneStage>();
}

}  // namespace hdpsim
