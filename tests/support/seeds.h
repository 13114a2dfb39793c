#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ranges>

namespace hdpsim::tests {

/// Whether HDPSIM_SEED asks for the case of one seed alone, so that what holds over many seeds need not hold.
inline bool one_seed() {
  return std::getenv("HDPSIM_SEED") != nullptr;
}

/// The seeds of a property's random cases: 1 to `count`, or HDPSIM_SEED=n alone, which is how a case is run again.
/// Under sanitizers a case takes about ten times as long, and a tenth of the cases run.
inline auto seeds(std::uint64_t count) {
  if (one_seed()) {
    const std::uint64_t seed = std::strtoull(std::getenv("HDPSIM_SEED"), nullptr, 10);
    return std::views::iota(seed, seed + 1);
  }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  count = std::max<std::uint64_t>(1, count / 10);
#endif
  return std::views::iota(std::uint64_t{1}, count + 1);
}

}  // namespace hdpsim::tests
