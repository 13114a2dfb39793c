#include "sim/cost/kernel_slowdown.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

DeviceProfile measured_profile() {
  DeviceProfile profile;
  profile.samples.interference = {{"attention", "p2p", 8, 1.30, 1.2, 1.4},   {"attention", "p2p", 2, 1.05, 1.0, 1.1},
                                  {"attention", "d2h", 0, 1.50, 1.5, 1.5},   {"gemm", "p2p", 1, 1.70, 1.6, 1.8},
                                  {"elementwise", "p2p", 2, 0.98, 0.9, 1.1}, {"elementwise", "p2p", 4, 1.2, 1.1, 1.3}};
  return profile;
}

TEST_CASE("what was measured beside messages with the fewest thread blocks counts, noise does not", "[slowdown]") {
  const auto slowdown = kernel_slowdown(measured_profile());
  REQUIRE(slowdown.has_value());
  CHECK(slowdown->attention == 1.05);
  CHECK(slowdown->product == 1.7);
  CHECK(slowdown->memory_bound == 1);
  CHECK(slowdown->evidence == Evidence::interpolated);
}

TEST_CASE("a factor that the profile states counts before what was measured", "[slowdown]") {
  DeviceProfile profile = measured_profile();
  profile.overheads.compute_beside_communication = {1.2, "a publication"};
  const auto slowdown = kernel_slowdown(profile);
  REQUIRE(slowdown.has_value());
  CHECK(slowdown->attention == 1.2);
  CHECK(slowdown->product == 1.2);
  CHECK(slowdown->memory_bound == 1.2);
  CHECK(slowdown->evidence == Evidence::formula);
}

TEST_CASE("copies beside kernels say nothing about messages beside them", "[slowdown]") {
  DeviceProfile profile;
  CHECK_FALSE(kernel_slowdown(profile));
  profile.samples.interference = {{"attention", "both", 0, 1.5, 1.4, 1.6}, {"gemm", "d2h", 0, 1.1, 1.0, 1.2}};
  CHECK_FALSE(kernel_slowdown(profile));
}

}  // namespace
}  // namespace hdpsim
