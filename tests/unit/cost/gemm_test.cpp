#include "sim/cost/impl/log_curve.h"
#include "tests/unit/cost/cost_support.h"

namespace hdpsim {
namespace {

using testing::round_device;
using testing::shipped_profile;

constexpr double giga = 1e9;

/// 100 TFLOP/s at efficiency 1, tiles of 100 x 100, half speed at 1 GFLOP, full speed at 100.
DeviceProfile device_with_products() {
  DeviceProfile profile = round_device();
  GemmTable table;
  table.tile_m = 100;
  table.tile_n = 100;
  table.launch = 10_us;
  table.full_rate = 100_TFLOPs;
  table.by_work = {{1, 0.5}, {100, 1}};
  profile.gemm = table;
  return profile;
}

TEST_CASE("a curve is linear in the logarithm between its knots and constant beyond", "[cost]") {
  LogCurve curve;
  curve.add(100, 3);
  curve.add(1, 1);
  curve.add(100, 5);  // a second sample of the size: their mean
  CHECK(curve.at(10) == Approx((1 + 4) / 2.0));
  CHECK(curve.at(0.1) == 1);
  CHECK(curve.at(1e6) == 4);
  CHECK(curve.covers(100));
  CHECK_FALSE(curve.covers(101));
}

TEST_CASE("a product's efficiency grows with its work", "[cost]") {
  const auto cost = make_cost_model(device_with_products());
  // 1000 x 1000 are 100 tiles, one wave. k = 500: 1 GFLOP at 50 TFLOP/s. k = 5,000: 10 GFLOP at 75.
  const Estimate small = cost->gemm({1000, 1000, 500});
  CHECK(small.time.seconds() == Approx(10e-6 + 1 * giga / 50e12));
  CHECK(small.evidence == Evidence::interpolated);
  CHECK(cost->gemm({1000, 1000, 5000}).time.seconds() == Approx(10e-6 + 10 * giga / 75e12));
  CHECK(cost->gemm({10000, 10000, 5000}).evidence == Evidence::extrapolated);
}

TEST_CASE("a product in fp8 is priced by its own table", "[cost]") {
  DeviceProfile profile = device_with_products();
  profile.gemm_fp8 = profile.gemm;
  profile.gemm_fp8->full_rate = 200_TFLOPs;
  const auto cost = make_cost_model(profile);
  const Duration bf16 = cost->gemm({1000, 1000, 5000}).time - 10_us;
  const Duration fp8 = cost->gemm({1000, 1000, 5000, true}).time - 10_us;
  CHECK(2 * fp8.seconds() == Approx(bf16.seconds()));
}

TEST_CASE("a last wave of few tiles lasts as long as a full one", "[cost]") {
  const auto cost = make_cost_model(device_with_products());
  const Duration one_wave = cost->gemm({1000, 1000, 50000}).time;
  const Duration two_waves = cost->gemm({2000, 1000, 50000}).time;
  CHECK(cost->gemm({1001, 1000, 50000}).time == two_waves);  // 110 tiles on 100 processors
  CHECK(two_waves - 10_us == 2 * (one_wave - 10_us));
}

TEST_CASE("a product that reads more than it computes is bound by memory", "[cost]") {
  DeviceProfile profile = device_with_products();
  profile.datasheet.memory_bandwidth = 100_GBps;
  const double bytes = 2.0 * (1 * 20000 + 20000.0 * 20000 + 1 * 20000);
  CHECK(make_cost_model(profile)->gemm({1, 20000, 20000}).time.seconds() == Approx(10e-6 + bytes / 100e9));
}

TEST_CASE("weights that were measured are interpolated in m, and a sample returns its own time", "[cost]") {
  DeviceProfile profile = device_with_products();
  profile.gemm->by_shape = {{1000, 1000, 5000, 10_us + 200_us, {}}, {4000, 1000, 5000, 10_us + 500_us, {}}};
  const auto cost = make_cost_model(profile);
  CHECK(cost->gemm({1000, 1000, 5000}).time == 210_us);
  CHECK(cost->gemm({1000, 1000, 5000}).evidence == Evidence::measured);
  // Efficiency: 10 GFLOP in 200 us is half of 100 TFLOP/s, 40 GFLOP in 500 us 0.8. Halfway, at 2,000 rows: 0.65.
  const Estimate between = cost->gemm({2000, 1000, 5000});
  CHECK(between.time.seconds() == Approx(10e-6 + 20 * giga / (0.65 * 100e12)));
  CHECK(between.evidence == Evidence::interpolated);
  CHECK(cost->gemm({8000, 1000, 5000}).evidence == Evidence::extrapolated);
}

TEST_CASE("the MLP of the case study takes 9.5 ms on the published A100", "[cost]") {
  const auto cost = make_cost_model(shipped_profile("a100-published"));
  const Duration mlp = cost->gemm({8192, 2 * 11008 / 2, 4096}).time + cost->gemm({8192, 4096, 11008 / 2}).time;
  CHECK(mlp.seconds() == Approx(9.5e-3).epsilon(0.005));
}

TEST_CASE("cuBLAS's 796 TFLOP/s on a cube of 8,192 come out of the H100 profile", "[cost]") {
  const auto cost = make_cost_model(shipped_profile("h100-published"));
  const double rate = 2.0 * 8192 * 8192 * 8192 / cost->gemm({8192, 8192, 8192}).time.seconds();
  CHECK(rate == Approx(796e12).epsilon(0.005));
}

TEST_CASE("a product's time never falls when a side grows", "[cost]") {
  for (const char* name : {"a100-published", "h100-published", "cpu-datasheet"}) {
    const auto cost = make_cost_model(shipped_profile(name));
    Duration before;
    for (std::int64_t m = 1; m < 100'000; m += 1 + m / 61) {
      INFO(name << ": " << m);
      const Duration time = cost->gemm({m, 11008, 4096}).time;
      REQUIRE(time >= before);
      before = time;
    }
  }
}

TEST_CASE("a memory-bound kernel has a latency and a bandwidth", "[cost]") {
  DeviceProfile profile = round_device();
  profile.memory_bound = MemoryBoundRate{5_us, 500_GBps, "test"};
  const auto cost = make_cost_model(profile);
  const Estimate estimate = cost->memory_bound({Bytes(1'000'000'000), 2});
  CHECK(estimate.time == 2 * 5_us + 2_ms);
  CHECK(estimate.evidence == Evidence::interpolated);
}

}  // namespace
}  // namespace hdpsim
