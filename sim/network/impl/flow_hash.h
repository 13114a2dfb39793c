#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/network/fabric.h"

namespace hdpsim {

/// A number that looks drawn, the same for the same argument: splitmix64 (Steele, Lea and Flood 2014).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

/// The choices that switches make for the flow from one NIC to another: independent of each other, and reproducible.
class FlowHash {
 public:
  FlowHash(std::uint64_t seed, const Port& from, const Port& to) : state_(seed) {
    for (const std::size_t part : {from.node, from.rail, to.node, to.rail}) state_ = mixed(state_ ^ part);
  }

  /// One of `ways`, nearly uniform (ways far below 2^32).
  [[nodiscard]] std::size_t choose(std::size_t ways) {
    state_ = mixed(state_);
    return static_cast<std::size_t>(((state_ >> 32U) * ways) >> 32U);
  }

 private:
  std::uint64_t state_;
};

}  // namespace hdpsim
