#include "sim/cost/impl/fitted.h"

#include "sim/base/random.h"
#include "sim/cost/fitted_transfer.h"
#include "tests/unit/cost/cost_support.h"

namespace hdpsim {
namespace {

using testing::doubling_curve;
using testing::round_device;

/// Tiles of 128 x 128; launch 10 us, a pair 1 ns, a row of queries or keys 2 ns; from 256 to 4,096 tokens.
AttentionFit round_fit(bool causal = false) {
  AttentionFit fit;
  fit.causal = causal;
  fit.head_dim = 128;
  fit.tile_queries = 128;
  fit.tile_keys = 128;
  fit.launch_s = 10e-6;
  fit.pairs = {{128, 1e-9}};
  fit.row_s = 2e-9;
  fit.shortest = 256;
  fit.longest = 4096;
  return fit;
}

DeviceProfile fitted_device() {
  DeviceProfile profile = round_device();
  profile.fits.attention = {round_fit()};
  return profile;
}

Attention forward(std::vector<AttentionBlock> blocks) {
  return {std::move(blocks), 16, 4, 128, Direction::forward};
}

TEST_CASE("a fitted launch is the sum of its terms over tile-rounded blocks", "[cost]") {
  const auto cost = make_cost_model(fitted_device());
  // 1,000 x 300 is 8 x 3 tiles; two of them; 16 heads of queries, 4 of keys. 256 rows of tiles fill 100 processors.
  const Estimate estimate = cost->attention(forward({{1000, 300, Mask::full, 2}}));
  const double pairs = 2 * 16 * 1024.0 * 384;
  const double rows = 2 * (16 * 1000.0 + 4 * 300.0);
  CHECK(estimate.time.seconds() == Approx(10e-6 + 1e-9 * pairs + 2e-9 * rows).epsilon(1e-9));
  CHECK(estimate.evidence == Evidence::interpolated);
}

TEST_CASE("two of the five products of a backward pass may run over tiles of their own", "[cost]") {
  const auto pairs = [](const AttentionBlock& block) {
    DeviceProfile profile = round_device();
    profile.datasheet.multiprocessors = 1;
    AttentionFit fit = round_fit(block.mask == Mask::causal);
    fit.backward = true;
    fit.launch_s = fit.row_s = 0;
    fit.gradient_tile_queries = 1;
    fit.gradient_tile_keys = 12;
    profile.fits.attention = {fit};
    const Attention op{{block}, 16, 4, 128, Direction::backward};
    return make_cost_model(profile)->attention(op).time.seconds() / (16 * fit.pairs[0].seconds);
  };
  // 1,000 x 295 is 8 x 3 tiles, and 1,000 x 25 groups of 12 keys.
  CHECK(pairs({1000, 295, Mask::full, 1}) == Approx((3 * 1024.0 * 384 + 2 * 1000.0 * 300) / 5));
  // Causal, 256 tokens: three tiles of 128 x 128; query i sees ceil(i / 12) groups of keys, 21 times 12 and 4 queries.
  const double groups = 12 * (21 * 22 / 2.0) + 4 * 22;
  CHECK(pairs({256, 256, Mask::causal, 1}) == Approx((3 * 3 * 128.0 * 128 + 2 * 12 * groups) / 5));
}

TEST_CASE("a fitted launch that leaves processors idle takes as long as its longest row of tiles", "[cost]") {
  const auto cost = make_cost_model(fitted_device());
  // One head has 8 rows of 128 x 1,024 pairs for 100 processors.
  const Attention one_head{{{1024, 1024, Mask::full, 1}}, 1, 1, 128, Direction::forward};
  CHECK(cost->attention(one_head).time.seconds() == Approx(10e-6 + 1e-9 * 128 * 1024 * 100 + 2e-9 * 2048));
}

TEST_CASE("waves and documents cost their own", "[cost]") {
  DeviceProfile profile = fitted_device();
  profile.fits.attention[0].wave_s = 1e-3;
  profile.fits.attention[0].document_s = 1e-6;
  const Attention op = forward({{2048, 1024, Mask::full, 1}});  // 16 x 16 rows of tiles: 3 waves of 100
  const double without = make_cost_model(fitted_device())->attention(op).time.seconds();
  CHECK(make_cost_model(profile)->attention(op).time.seconds() == Approx(without + 3e-3 + 16e-6));
}

TEST_CASE("a launch under both masks takes each from its own fit", "[cost]") {
  DeviceProfile profile = fitted_device();
  profile.fits.attention.push_back(round_fit(true));
  profile.fits.attention[1].pairs = {{128, 3e-9}};
  profile.fits.attention[1].launch_s = 20e-6;
  const auto cost = make_cost_model(profile);
  const double full = 1024.0 * 1024;
  const double causal = 128.0 * 128 * (8 * 9 / 2.0);
  const double rows = 2 * (16 + 4) * 1024.0;
  const Estimate both = cost->attention(forward({{1024, 1024, Mask::full, 1}, {1024, 1024, Mask::causal, 1}}));
  CHECK(both.time.seconds() == Approx(20e-6 + 16 * (1e-9 * full + 3e-9 * causal) + 2e-9 * rows));
}

TEST_CASE("evidence of a fit says whether the blocks were within what was measured", "[cost]") {
  const auto cost = make_cost_model(fitted_device());
  const auto evidence = [&](std::int64_t queries, std::int64_t keys) {
    return cost->attention(forward({{queries, keys, Mask::full, 1}})).evidence;
  };
  CHECK(evidence(256, 4096) == Evidence::interpolated);
  CHECK(evidence(255, 4096) == Evidence::extrapolated);
  CHECK(evidence(256, 4097) == Evidence::extrapolated);
  // The larger part of the area decides.
  const AttentionBlock inside{4096, 4096, Mask::full, 1};
  const AttentionBlock outside{64, 64, Mask::full, 1};
  CHECK(cost->attention(forward({inside, outside})).evidence == Evidence::interpolated);
}

TEST_CASE("a launch that was measured returns its own time, packed documents too", "[cost]") {
  DeviceProfile profile = fitted_device();
  AttentionCurve curve = doubling_curve();
  curve.kv_heads = 4;
  curve.packed = {{{{300, 300}, {700, 350}}, 77_us, {}}};
  profile.attention = {curve};
  const auto cost = make_cost_model(profile);
  const Estimate sample = cost->attention(forward({{4096, 4096, Mask::full, 1}}));
  CHECK(sample.time == curve.samples[1].time);
  CHECK(sample.evidence == Evidence::measured);
  const Attention pack = forward({{300, 300, Mask::full, 1}, {700, 350, Mask::full, 1}});
  CHECK(cost->attention(pack).time == 77_us);
  CHECK(cost->attention(pack).evidence == Evidence::measured);
  Attention other_heads = pack;
  other_heads.kv_heads = 16;
  CHECK(cost->attention(other_heads).evidence == Evidence::interpolated);
}

TEST_CASE("what has no fit is left to the tables", "[cost]") {
  DeviceProfile profile = fitted_device();
  profile.attention = {doubling_curve()};
  DeviceProfile tables = profile;
  tables.fits = {};
  Attention backward = forward({{2048, 2048, Mask::full, 1}});
  backward.direction = Direction::backward;
  CHECK(make_cost_model(profile)->attention(backward).time == make_cost_model(tables)->attention(backward).time);
  CHECK(make_cost_model(profile)->attention(backward).evidence == Evidence::extrapolated);
  CHECK(make_cost_model(profile)->gemm({4096, 4096, 4096}).evidence == Evidence::formula);
}

TEST_CASE("a fitted product is its law times the ratio of the samples around it", "[cost]") {
  DeviceProfile profile = round_device();
  GemmTable table;
  table.tile_m = 100;
  table.tile_n = 100;
  table.full_rate = 100_TFLOPs;
  // 1 GFLOP and 16 GFLOP at 100 TFLOP/s would be 10 us and 160 us.
  table.by_shape = {{1000, 1000, 500, 20_us, {}}, {4000, 1000, 2000, 240_us, {}}};
  profile.gemm = table;
  GemmFit fit;
  fit.flop_s = 1e-14;
  fit.neighbours = 2;
  profile.fits.gemm = fit;
  const auto cost = make_cost_model(profile);
  CHECK(cost->gemm({1000, 1000, 500}).time == 20_us);
  CHECK(cost->gemm({1000, 1000, 500}).evidence == Evidence::measured);
  // Equally far from both: the geometric mean of the ratios 2 and 1.5.
  const Estimate between = cost->gemm({2000, 1000, 1000});
  CHECK(between.time.seconds() == Approx(4e9 * 1e-14 * std::sqrt(2 * 1.5)));
  CHECK(between.evidence == Evidence::extrapolated);  // more than an octave from the nearest
  CHECK(cost->gemm({1000, 1000, 501}).evidence == Evidence::interpolated);
  CHECK(cost->gemm({1000, 1000, 499}).evidence == Evidence::extrapolated);
}

TEST_CASE("a memory-bound kernel follows the curve of its bytes", "[cost]") {
  DeviceProfile profile = round_device();
  MemoryBoundFit fit;
  fit.kernel = every_kernel;
  fit.curve = {3_us, {{Bytes(1'000'000), 1000_GBps}, {Bytes(100'000'000), 500_GBps}}};
  fit.least = Bytes(1'000'000);
  fit.most = Bytes(100'000'000);
  profile.fits.memory_bound = {fit};
  const auto cost = make_cost_model(profile);
  CHECK(cost->memory_bound({Bytes(1'000'000), 1}).time == 4_us);
  CHECK(cost->memory_bound({Bytes(2'000'000), 2}).time == 8_us);
  // Halfway in the logarithm a byte costs the mean: 1.5 ps.
  CHECK(cost->memory_bound({Bytes(10'000'000), 1}).time == 18_us);
  CHECK(cost->memory_bound({Bytes(10'000'000), 1}).evidence == Evidence::interpolated);
  const Estimate beyond = cost->memory_bound({Bytes(1'000'000'000), 1});
  CHECK(beyond.time == 2003_us);
  CHECK(beyond.evidence == Evidence::extrapolated);
}

TEST_CASE("a kernel that has a curve of its own follows that", "[cost]") {
  DeviceProfile profile = round_device();
  MemoryBoundFit all;
  all.kernel = every_kernel;
  all.curve = {3_us, {{Bytes(1'000'000), 1000_GBps}}};
  MemoryBoundFit rope = all;
  rope.kernel = "rope";
  rope.curve = {1_us, {{Bytes(1'000'000), 500_GBps}}};
  profile.fits.memory_bound = {all, rope};
  const auto cost = make_cost_model(profile);
  const Bytes megabyte(1'000'000);
  CHECK(cost->memory_bound({megabyte, 1, MemoryKernel::rope}).time == 3_us);
  CHECK(cost->memory_bound({megabyte, 1, MemoryKernel::add}).time == 4_us);
  LinearPart part;
  part.add({megabyte, 1, MemoryKernel::add});
  part.add({megabyte, 1, MemoryKernel::rope});
  part.add({megabyte, 1, MemoryKernel::add});
  CHECK(part.memory_bound.size() == 2);
  CHECK(cost->linear(part).time == 3_us + 2 * 4_us);
}

TEST_CASE("a message takes the fastest of its lines", "[cost]") {
  MessageFit fit;
  fit.lines = {{5_us, 10_GBps}, {20_us, 100_GBps}};
  CHECK(fitted_seconds(fit, 1e4) == Approx(5e-6 + 1e-6));
  CHECK(fitted_seconds(fit, 1e7) == Approx(20e-6 + 1e-4));
}

TEST_CASE("a fitted time never falls when a block grows within its kind", "[cost]") {
  DeviceProfile profile = fitted_device();
  profile.fits.attention[0].pairs = {{128, 4e-9}, {512, 2e-9}, {2048, 1.5e-9}};
  const auto cost = make_cost_model(profile);
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomStream random(seed, "blocks");
    const auto queries = static_cast<std::int64_t>(1 + random.below(5000));
    const auto keys = static_cast<std::int64_t>(1 + random.below(5000));
    CAPTURE(seed, queries, keys);
    const AttentionBlock block{queries, keys, Mask::full, 1};
    AttentionBlock twice = block;
    twice.count = 2;
    AttentionBlock longer{2 * queries, keys, Mask::full, 1};
    const Duration time = cost->attention(forward({block})).time;
    REQUIRE(cost->attention(forward({twice})).time >= time);
    REQUIRE(cost->attention(forward({longer})).time >= time);
    REQUIRE(cost->attention(forward({block, block})).time == cost->attention(forward({twice})).time);
  }
}

}  // namespace
}  // namespace hdpsim
