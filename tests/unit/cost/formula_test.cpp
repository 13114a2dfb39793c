#include "tests/unit/cost/cost_support.h"

namespace hdpsim {
namespace {

using testing::round_device;

TEST_CASE("without samples a product runs at peak or at the speed of memory, whichever is slower", "[cost]") {
  const auto cost = make_cost_model(round_device());
  // 2 x 8192^3 FLOP at 100 TFLOP/s: compute-bound.
  const Estimate large = cost->gemm({8192, 8192, 8192});
  CHECK(large.time == 10_us + Duration::seconds(2.0 * 8192 * 8192 * 8192 / 100e12));
  CHECK(large.evidence == Evidence::formula);
  // One row against a matrix of 8192 x 8192: its 134 MB at 1 TB/s.
  const double bytes = 2.0 * (8192 + 8192.0 * 8192 + 8192);
  CHECK(cost->gemm({1, 8192, 8192}).time == 10_us + Duration::seconds(bytes / 1e12));
}

TEST_CASE("without samples attention costs its exact mask area, backward two and a half times as much", "[cost]") {
  const auto cost = make_cost_model(round_device());
  const double area = 8192.0 * 8193 / 2;
  const double work = 4 * 16 * 128 * area;
  Attention op{{{8192, 8192, Mask::causal, 1}}, 16, 4, 128, Direction::forward};
  CHECK(cost->attention(op).time == 10_us + Duration::seconds(work / 100e12));
  op.direction = Direction::backward;
  CHECK(cost->attention(op).time == 10_us + Duration::seconds(2.5 * work / 100e12));
  CHECK(cost->attention(op).evidence == Evidence::formula);
}

TEST_CASE("without samples a memory-bound kernel moves its bytes at the memory's bandwidth", "[cost]") {
  const auto cost = make_cost_model(round_device());
  CHECK(cost->memory_bound({Bytes(1'000'000'000), 3}).time == 3 * 10_us + 1_ms);
}

TEST_CASE("nothing to launch takes no time", "[cost]") {
  for (const char* name : {"cpu-datasheet", "bytescale-implied"}) {
    const auto cost = make_cost_model(testing::shipped_profile(name));
    CHECK(cost->attention({{}, 16, 4, 128, Direction::forward}).time == Duration{});
    CHECK(cost->memory_bound({Bytes{}, 0}).time == Duration{});
  }
}

TEST_CASE("evidence has a name for reports", "[cost]") {
  CHECK(evidence_name(Evidence::measured) == "measured");
  CHECK(evidence_name(Evidence::formula) == "formula");
}

}  // namespace
}  // namespace hdpsim
