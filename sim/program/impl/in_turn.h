#pragma once

#include <algorithm>
#include <cstdint>

namespace hdpsim {

/// The order that 1F1B and what is made from it have in common (Narayanan et al. 2021): `warm_up` forward passes, then
/// one forward and one backward in turn for as long as there are both. `forward(i)` and `backward(i)` append the i-th of
/// `count` passes each.
template <class Forward, class Backward>
void in_turn(std::int64_t warm_up, std::int64_t count, Forward forward, Backward backward) {
  for (std::int64_t i = 0; i < std::min(warm_up, count); ++i) forward(i);
  for (std::int64_t i = 0; i < count; ++i) {
    if (warm_up + i < count) forward(warm_up + i);
    backward(i);
  }
}

}  // namespace hdpsim
