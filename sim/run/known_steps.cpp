#include "sim/run/known_steps.h"

namespace hdpsim {

std::shared_ptr<const KnownStep> KnownSteps::find(std::size_t run, std::int64_t step) const {
  const std::lock_guard lock(mutex_);
  const auto found = steps_.find({run, step});
  return found == steps_.end() ? nullptr : found->second;
}

void KnownSteps::keep(std::size_t run, const KnownStep& known) {
  const SimulatedStep& step = known.step;
  const std::size_t entries = step.ranks.size() + step.links.main.bytes.size() + step.links.others.bytes.size();
  const std::lock_guard lock(mutex_);
  if (entries > room_) return;
  const auto [place, is_new] = steps_.try_emplace({run, step.result.step});
  if (!is_new) return;
  place->second = std::make_shared<const KnownStep>(known);
  room_ -= entries;
}

}  // namespace hdpsim
