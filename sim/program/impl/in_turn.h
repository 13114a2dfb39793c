#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/program/schedule.h"

namespace hdpsim {

/// The common order of 1F1B and the schedules derived from it (Narayanan et al. 2021): `warm_up` forward passes, then
/// one forward and one backward in turn while there are both, then the remaining backward passes. `forward(i)` and
/// `backward(i)` append the i-th of `count` passes each.
template <class Forward, class Backward>
void in_turn(std::int64_t warm_up, std::int64_t count, Forward forward, Backward backward) {
  for (std::int64_t i = 0; i < std::min(warm_up, count); ++i) forward(i);
  for (std::int64_t i = 0; i < count; ++i) {
    if (warm_up + i < count) forward(warm_up + i);
    backward(i);
  }
}

/// The same for a stage whose only chunk has the stage's number and whose backward is one pass.
inline std::vector<SlotPass> in_turn_on(std::int64_t stage, std::int64_t warm_up, std::int64_t slots) {
  std::vector<SlotPass> passes;
  const auto add = [&](std::int64_t slot, PassKind kind) { passes.push_back({slot, stage, kind}); };
  in_turn(
      warm_up, slots, [&](std::int64_t slot) { add(slot, PassKind::forward); },
      [&](std::int64_t slot) { add(slot, PassKind::backward); });
  return passes;
}

}  // namespace hdpsim
