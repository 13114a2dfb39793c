#include "tests/unit/cost/cost_support.h"

namespace hdpsim {
namespace {

using testing::round_device;

TEST_CASE("a product that adds its result to a sum takes the time of most bytes that it moves besides", "[cost]") {
  const DeviceProfile profile = round_device();  // elements of 2 bytes
  const auto cost = make_cost_model(profile);
  const Gemm plain{4096, 1024, 2048};
  const auto further = [&](std::int64_t sum_bytes) {
    Gemm adds = plain;
    adds.sum_bytes = sum_bytes;
    return cost->gemm(adds).time - cost->gemm(plain).time;
  };
  // The sum is read and written, an element is not written. Of 6 bytes 3.7 show on an A100 and 4.9 on a B200.
  const double shown = (3.7 + 4.9) / 2 / 6;
  const Duration bytewise = Bytes(plain.m * plain.n) / profile.datasheet.memory_bandwidth;
  CHECK(further(4).seconds() == Approx(shown * 6 * bytewise.seconds()).epsilon(0.01));
  CHECK(further(2).seconds() == Approx(shown * 2 * bytewise.seconds()).epsilon(0.01));
  CHECK(further(0) == Duration{});
}

}  // namespace
}  // namespace hdpsim
