#include "sim/profile/device_spread.h"

#include <cmath>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("the expected largest of normal values is that of tables of order statistics", "[spread]") {
  const double pi = std::acos(-1.0);
  CHECK(expected_largest_normal(1) == Approx(0).margin(1e-6));
  CHECK(expected_largest_normal(2) == Approx(1 / std::sqrt(pi)).margin(1e-6));
  CHECK(expected_largest_normal(3) == Approx(1.5 / std::sqrt(pi)).margin(1e-6));
  CHECK(expected_largest_normal(8) == Approx(1.42360).margin(1e-5));
  CHECK(expected_largest_normal(1000) == Approx(3.24144).margin(1e-5));
}

TEST_CASE("the slowest of more devices is slower, up to any number", "[spread]") {
  double last = expected_largest_normal(1);
  for (std::int64_t devices = 2; devices <= 1 << 20; devices *= 2) {
    const double largest = expected_largest_normal(devices);
    CHECK(largest > last);
    CHECK(largest < std::sqrt(2 * std::log(static_cast<double>(devices))));
    last = largest;
  }
}

TEST_CASE("products and attention wait for the slowest device, kernels bound by memory and links do not", "[spread]") {
  const FamilyFactors factors = factors_of_slowest(0.01, 8);
  for (const CostFamily family : {CostFamily::gemm, CostFamily::attention_forward, CostFamily::attention_backward}) {
    CHECK(factors[family] == Approx(1.014236).margin(1e-6));
  }
  for (const CostFamily family : {CostFamily::memory_bound, CostFamily::messages, CostFamily::collectives}) {
    CHECK(factors[family] == 1);
  }
  CHECK_FALSE(factors_of_slowest(0.01, 1).any());
  CHECK_FALSE(factors_of_slowest(0, 8).any());
}

}  // namespace
}  // namespace hdpsim
