#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim::tests {

/// Whether HDPSIM_SEED asks for the case of one seed alone, so that what holds over many seeds need not hold.
inline bool one_seed() {
  return std::getenv("HDPSIM_SEED") != nullptr;
}

/// The seeds of a property's random cases: 1 to `count`, or HDPSIM_SEED=n alone, which is how a case is run again.
/// Under sanitizers a case takes about ten times as long, and a tenth of the cases run.
inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* seed = std::getenv("HDPSIM_SEED")) return {std::strtoull(seed, nullptr, 10)};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  count = std::max<std::uint64_t>(1, count / 10);
#endif
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

/// Runs `law` for seeds(count).
template <class Law>
void for_seeds(const char* tag, std::uint64_t count, const Law& law) {
  for (const std::uint64_t seed : seeds(count)) {
    INFO("replay: HDPSIM_SEED=" << seed << " test_property [" << tag << "]");
    RandomStream random(seed, tag);
    law(random);
  }
}

}  // namespace hdpsim::tests
