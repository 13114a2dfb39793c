#include "sim/run/known_steps.h"

namespace hdpsim {

std::shared_ptr<const KnownStep> KnownSteps::find(std::size_t run, std::int64_t step) const {
  const std::lock_guard lock(mutex_);
  const auto found = steps_.find({run, step});
  return found == steps_.end() ? nullptr : found->second;
}

void KnownSteps::keep(std::size_t run, const KnownStep& step) {
  const SimulatedStep& simulated = step.step;
  const std::size_t entries =
      simulated.ranks.size() + simulated.links.main.bytes.size() + simulated.links.others.bytes.size();
  const std::lock_guard lock(mutex_);
  if (entries > room_) return;
  const auto [place, is_new] = steps_.try_emplace({run, simulated.result.step});
  if (!is_new) return;
  place->second = std::make_shared<const KnownStep>(step);
  room_ -= entries;
}

}  // namespace hdpsim
