#include "sim/model/optimizer_work.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

constexpr OptimizerShare a_quarter{.held = 400, .updated = 100, .averages = true};

TEST_CASE("Adam reads a gradient, a weight and two moments, and writes these three and the parameter", "[model]") {
  CHECK(optimizer_work(a_quarter, 2, {}).traffic == Bytes(100 * (4 + 3 * 4 + 3 * 4 + 2)));
  CHECK(optimizer_work(a_quarter, 2, {.gradient_bytes = 2}).traffic == Bytes(100 * (2 + 3 * 4 + 3 * 4 + 2)));
}

TEST_CASE("a buffer of gradients is cleared, checked and scaled whole; the norm and a copy are of what is updated",
          "[model]") {
  const Recipe buffered{.gradient_buffer = true};
  const Bytes adam = optimizer_work(a_quarter, 2, {}).traffic;
  const Bytes more = Bytes(100 * (4 + 4));
  CHECK(optimizer_work(a_quarter, 2, buffered).traffic == adam + more + Bytes(400 * (4 + 4 + 2 * 4)));
  OptimizerShare of_one = a_quarter;
  of_one.averages = false;
  CHECK(optimizer_work(of_one, 2, buffered).traffic == adam + more + Bytes(400 * (4 + 4)));
}

TEST_CASE("gradients that are sharded in every micro-batch have no such buffer", "[model]") {
  for (const std::int64_t zero : {2, 3}) {
    const Recipe buffered{.zero = zero, .gradient_buffer = true};
    CHECK(optimizer_work(a_quarter, 2, buffered).traffic == optimizer_work(a_quarter, 2, {.zero = zero}).traffic);
  }
}

}  // namespace
}  // namespace hdpsim
