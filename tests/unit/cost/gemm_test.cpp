#include <cmath>
#include <vector>

#include "sim/cost/impl/sampled_kernels.h"
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

TEST_CASE("a product in fp8 is priced by its format's table", "[cost]") {
  DeviceProfile profile = device_with_products();
  for (const ProductFormat format : {ProductFormat::fp8, ProductFormat::fp8_blocks, ProductFormat::fp8_deepgemm,
                                     ProductFormat::mxfp8, ProductFormat::nvfp4}) {
    std::optional<GemmTable>& table = profile.gemm_narrow[narrow_format(format).table];
    table = profile.gemm;
    const auto times = 2.0 + static_cast<double>(narrow_format(format).table);
    table->full_rate = FlopRate(times * profile.gemm->full_rate.per_second());
  }
  const auto cost = make_cost_model(profile);
  const Duration bf16 = cost->gemm({1000, 1000, 5000}).time - 10_us;
  const auto faster = [&](ProductFormat format) {
    return bf16.seconds() / (cost->gemm({1000, 1000, 5000, format}).time - 10_us).seconds();
  };
  CHECK(faster(ProductFormat::fp8) == Approx(2));
  CHECK(faster(ProductFormat::fp8_current) == Approx(2));
  CHECK(faster(ProductFormat::fp8_blocks) == Approx(3));
  CHECK(faster(ProductFormat::fp8_deepgemm) == Approx(4));
  CHECK(faster(ProductFormat::mxfp8) == Approx(5));
  CHECK(faster(ProductFormat::nvfp4) == Approx(6));
}

TEST_CASE("products that run at the same time share waves of tiles", "[cost]") {
  const auto cost = make_cost_model(device_with_products());
  // 110 tiles on 100 processors are two waves; ten such products are eleven.
  const Duration alone = cost->gemm({1001, 1000, 50000}).time - 10_us;
  const Duration ten = cost->gemm({.m = 1001, .n = 1000, .k = 50000, .count = 10}).time - 10_us;
  CHECK(ten.seconds() == Approx(5.5 * alone.seconds()));
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

TEST_CASE("no product moves its bytes faster than other kernels do", "[cost]") {
  DeviceProfile profile = device_with_products();
  profile.memory_bound = MemoryBoundRate{5_us, 500_GBps, "test"};
  // 512 products 1,024 x 128 x 1,024 as one: 128 FLOPs a byte, that is 64 TFLOP/s at 500 GB/s.
  const Gemm batch{512 * 1024, 1024, 128};
  const double bytes = 2.0 * (512 * 1024.0 * 128 + 128 * 1024.0 + 512 * 1024.0 * 1024);
  CHECK(make_cost_model(profile)->gemm(batch).time.seconds() == Approx(10e-6 + bytes / 500e9));
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

// The layer whose products Transformer Engine's documentation has times of (examples/gemm_profiling).
std::vector<Gemm> documented_layer(ProductFormat format) {
  const std::int64_t tokens = 31 * 512;
  const std::int64_t hidden = 4096;
  const std::int64_t inner = 16384;
  std::vector<Gemm> all;
  for (const auto& [n, k] : {std::pair(3 * hidden, hidden), {hidden, hidden}, {inner, hidden}, {hidden, inner}}) {
    all.insert(all.end(), {{tokens, n, k, format}, {tokens, k, n, format}, {k, n, tokens, format}});
  }
  return all;
}

double documented_layer_s(const CostModel& cost, ProductFormat format) {
  Duration sum;
  for (const Gemm& product : documented_layer(format)) sum += cost.gemm(product).time;
  return sum.seconds();
}

TEST_CASE("published devices multiply a layer in fp8 as much faster as Transformer Engine was measured to", "[cost]") {
  const auto faster = [](const char* profile, ProductFormat format) {
    const auto cost = make_cost_model(shipped_profile(profile));
    return documented_layer_s(*cost, ProductFormat::elements) / documented_layer_s(*cost, format);
  };
  CHECK(faster("h100-published", ProductFormat::fp8) == Approx(1.90).epsilon(0.03));
  CHECK(faster("h200-published", ProductFormat::fp8) == Approx(1.90).epsilon(0.03));
  // Of B200 the rates of bf16 are by shape, those of fp8 by work.
  CHECK(faster("b200-published", ProductFormat::fp8) == Approx(1.92).epsilon(0.1));
  CHECK(faster("b200-published", ProductFormat::mxfp8) == Approx(1.83).epsilon(0.1));
  CHECK(faster("b200-published", ProductFormat::nvfp4) == Approx(3.48).epsilon(0.1));
}

TEST_CASE("a scale from the tensor itself costs as much more than one that is known as was measured", "[cost]") {
  // On H200 NVL the products take 16.785 ms; 18.978 and 20.285 ms with the cast of both sides of each, by rows alone.
  const double known = 18.978 - 16.785;
  const double from_tensor = 20.285 - 16.785;
  const auto bytes = [](ProductFormat format) {
    double sum = 0;
    for (const Gemm& op : documented_layer(format)) {
      const std::int64_t numbers = (op.m + op.n) * op.k;
      sum += static_cast<double>(cast_bytes(format, numbers, 2) - row_bytes(format, numbers, 2));
    }
    return sum;
  };
  CHECK(bytes(ProductFormat::fp8_current) / bytes(ProductFormat::fp8) == Approx(from_tensor / known).epsilon(0.05));
  const auto profile = shipped_profile("h200-published");
  CHECK(bytes(ProductFormat::fp8) / static_cast<double>(profile.memory_bound->bandwidth.bytes_per_second()) ==
        Approx(1e-3 * known).epsilon(0.05));
}

struct TimedProduct {
  Gemm product;
  double milliseconds;
};

// How many times longer a product takes than was measured, on average.
double mean_error(const CostModel& cost, const std::vector<TimedProduct>& measured) {
  double sum = 0;
  for (const auto& [product, milliseconds] : measured) {
    const double ratio = cost.gemm(product).time.seconds() / (milliseconds * 1e-3);
    INFO(product.m << " x " << product.n << " x " << product.k);
    CHECK(ratio == Approx(1).margin(0.2));
    sum += ratio;
  }
  return sum / static_cast<double>(measured.size()) - 1;
}

TEST_CASE("products with scales of blocks take the time that DeepGEMM published", "[cost]") {
  const auto cost = make_cost_model(shipped_profile("h100-published"));
  double sum = 0;
  const auto error = [&](const Gemm& op, double tera_flops) {
    const double work = 2.0 * static_cast<double>(op.m) * static_cast<double>(op.n) * static_cast<double>(op.k);
    const double rate = work / cost->gemm({op.m, op.n, op.k, ProductFormat::fp8_deepgemm}).time.seconds();
    CAPTURE(op.m, op.n, op.k, rate);
    CHECK(rate == Approx(1e12 * tera_flops).epsilon(0.1));
    sum += rate / (1e12 * tera_flops) - 1;
  };
  error({256, 4096, 7168}, 932);
  // 256 x 7168 x 2048 is bound by memory.
  error({512, 7168, 2048}, 916);
  error({512, 4096, 7168}, 1040);
  error({1024, 4096, 7168}, 1233);
  error({1024, 7168, 2048}, 925);
  error({4096, 2112, 7168}, 1127);
  error({4096, 24576, 1536}, 1212);
  error({4096, 7168, 16384}, 1520);
  error({4096, 4096, 7168}, 1410);
  error({4096, 7168, 2048}, 1168);
  error({8192, 4096, 7168}, 1346);
  error({8192, 7168, 2048}, 1214);
  CHECK(std::abs(sum / 12) < 0.02);
}

// Medians of microsoft/vidur, data/profiling/compute/{a100,h100}/meta-llama/Llama-2-*/mlp.csv.
TEST_CASE("products of Llama-2 on a DGX take what was measured, on average", "[cost]") {
  const std::vector<TimedProduct> h100 = {
      {{4096, 10240, 8192}, 0.9825}, {{4096, 8192, 8192}, 0.7885}, {{4096, 57344, 8192}, 5.6685},
      {{4096, 8192, 28672}, 2.647},  {{2048, 10240, 8192}, 0.579}, {{2048, 8192, 8192}, 0.394},
      {{2048, 57344, 8192}, 2.737},  {{2048, 8192, 28672}, 1.28},  {{1024, 57344, 8192}, 1.3835},
      {{1024, 8192, 28672}, 0.846},  {{4096, 5120, 8192}, 0.493},  {{4096, 8192, 4096}, 0.4045},
      {{4096, 28672, 8192}, 2.756},  {{4096, 8192, 14336}, 1.304},
  };
  const std::vector<TimedProduct> a100 = {
      {{4096, 10240, 8192}, 2.872},  {{4096, 8192, 8192}, 2.377},  {{4096, 57344, 8192}, 15.9405},
      {{4096, 8192, 28672}, 8.0635}, {{2048, 10240, 8192}, 1.424}, {{2048, 8192, 8192}, 1.184},
      {{2048, 57344, 8192}, 7.955},  {{2048, 8192, 28672}, 4.022}, {{4096, 12288, 4096}, 1.911},
      {{4096, 22016, 4096}, 3.3655}, {{4096, 4096, 11008}, 1.604},
  };
  CHECK(std::abs(mean_error(*make_cost_model(shipped_profile("h100-published")), h100)) < 0.02);
  CHECK(std::abs(mean_error(*make_cost_model(shipped_profile("a100-sxm-published")), a100)) < 0.02);
}

TEST_CASE("a product's time never falls when a side grows", "[cost]") {
  for (const char* name : {"bytescale-implied", "h100-published", "cpu-datasheet"}) {
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

TEST_CASE("kinds of kernels that are known to reach another bandwidth do", "[cost]") {
  DeviceProfile profile = round_device();
  profile.memory_bound = MemoryBoundRate{5_us, 500_GBps, "test", {{MemoryKernel::fp32_loss, 250_GBps}}};
  const auto cost = make_cost_model(profile);
  const Bytes bytes(1'000'000'000);
  CHECK(cost->memory_bound({bytes, 1, MemoryKernel::fp32_loss}).time == 5_us + 4_ms);
  CHECK(cost->memory_bound({bytes, 1, MemoryKernel::adam}).time == 5_us + 2_ms);
}

}  // namespace
}  // namespace hdpsim
