#include <cmath>
#include <vector>

#include "sim/cost/impl/formula.h"
#include "sim/cost/impl/sampled_kernels.h"
#include "tests/unit/cost/cost_support.h"

namespace hdpsim {
namespace {

using testing::doubling_curve;
using testing::launch_of;
using testing::round_device;
using testing::shipped_profile;

std::unique_ptr<CostModel> model_of(const AttentionCurve& curve) {
  DeviceProfile profile = round_device();
  profile.attention = {curve};
  return make_cost_model(profile);
}

/// Tiles that hold any pair of the causal mask, counted one by one.
std::int64_t counted_causal_area(std::int64_t tokens, std::int64_t tile_queries, std::int64_t tile_keys) {
  std::int64_t tiles = 0;
  for (std::int64_t query = 0; query < tokens; query += tile_queries) {
    const std::int64_t last_query = std::min(query + tile_queries, tokens) - 1;
    for (std::int64_t key = 0; key <= last_query; key += tile_keys) ++tiles;
  }
  return tiles * tile_queries * tile_keys;
}

TEST_CASE("the tile-rounded area of a causal block counts every tile that holds a pair of the mask", "[cost]") {
  for (const auto& [queries, keys] : std::vector<std::pair<int, int>>{
           {128, 64}, {128, 128}, {64, 128}, {32, 128}, {12, 32}, {6, 16}, {128, 176}, {176, 128}}) {
    for (std::int64_t tokens = 1; tokens < 1100; ++tokens) {
      INFO(tokens << " tokens, tiles of " << queries << " x " << keys);
      REQUIRE(causal_tile_area(tokens, queries, keys) == counted_causal_area(tokens, queries, keys));
    }
  }
}

TEST_CASE("every sample of every shipped profile returns its own time", "[cost]") {
  for (const char* name : {"bytescale-implied", "h100-published", "h200-published"}) {
    const DeviceProfile profile = shipped_profile(name);
    const auto cost = make_cost_model(profile);
    for (const AttentionCurve& curve : profile.attention) {
      for (const AttentionSample& sample : curve.samples) {
        INFO(name << ": " << sample.queries << " x " << sample.keys << ", head dimension " << curve.head_dim);
        const Mask mask = curve.causal ? Mask::causal : Mask::full;
        const Direction direction = curve.backward ? Direction::backward : Direction::forward;
        AttentionBlock block{sample.queries, sample.keys, mask, sample.count};
        CHECK(cost->attention({{block}, curve.heads, curve.heads, curve.head_dim, direction}).time == sample.time);
        // Split into two entries the launch is no longer a sample, but interpolation passes through it.
        if (sample.count < 2) continue;
        block.count -= 1;
        const AttentionBlock last{sample.queries, sample.keys, mask, 1};
        const Attention split{{block, last}, curve.heads, curve.heads, curve.head_dim, direction};
        CHECK(cost->attention(split).time.seconds() == Approx(sample.time.seconds()).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("of several curves of a kernel that with the nearest number of heads counts", "[cost]") {
  const AttentionCurve sixteen = doubling_curve();
  AttentionCurve four = sixteen;  // the same times with a quarter of the heads: a device that they do not fill
  four.heads = 4;
  DeviceProfile profile = round_device();
  profile.attention = {sixteen, four};
  const auto cost = make_cost_model(profile);
  const AttentionBlock block{4096, 4096, Mask::full, 1};
  const auto time = [&](std::int64_t heads) {
    return cost->attention({{block}, heads, heads, 128, Direction::forward}).time.seconds() - 10e-6;
  };
  CHECK(time(4) == Approx(time(16)));
  CHECK(time(5) == Approx(time(4) * 5 / 4));
  CHECK(time(10) == Approx(time(16) * 10 / 16));
  CHECK(time(32) == Approx(time(16) * 2));
}

TEST_CASE("half of the queries against all keys take as long as all queries against half of the keys", "[cost]") {
  const auto cost = make_cost_model(shipped_profile("bytescale-implied"));
  const Duration all_queries = cost->attention(launch_of({8192, 4096, Mask::full, 1})).time;
  const Duration half_queries = cost->attention(launch_of({4096, 8192, Mask::full, 1})).time;
  CHECK(half_queries.seconds() == Approx(all_queries.seconds()).epsilon(0.001));
  const Duration backward = cost->attention(launch_of({8192, 4096, Mask::full, 1}, Direction::backward)).time;
  CHECK(backward.seconds() == Approx(2.5 * all_queries.seconds()).epsilon(0.01));
}

TEST_CASE("between samples the rate over whole tiles is linear in the logarithm of the length", "[cost]") {
  const auto cost = model_of(doubling_curve());
  // Halfway between 1,024 and 4,096 in the logarithm: 2,048 at 1.5e10 pairs/s.
  const Estimate between = cost->attention(launch_of({2048, 2048, Mask::full, 1}));
  CHECK(between.time.seconds() == Approx(10e-6 + 16.0 * 2048 * 2048 / 1.5e10));
  CHECK(between.evidence == Evidence::interpolated);
  // Beyond the samples the rate stays.
  const Estimate beyond = cost->attention(launch_of({16384, 16384, Mask::full, 1}));
  CHECK(beyond.time.seconds() == Approx(10e-6 + 16.0 * 16384 * 16384 / 2e10));
  CHECK(beyond.evidence == Evidence::extrapolated);
}

TEST_CASE("a block of one token costs one whole tile at the rate of the shortest sample", "[cost]") {
  const auto cost = model_of(doubling_curve());
  // 1,000 blocks of one token and 16 heads fill 100 processors: 1,000 x 16 tiles of 128 x 128.
  const Estimate tiny = cost->attention(launch_of({1, 1, Mask::full, 1000}));
  CHECK(tiny.time.seconds() == Approx(10e-6 + 1000.0 * 16 * 128 * 128 / 1e10));
  CHECK(tiny.evidence == Evidence::extrapolated);
  const Duration full_tile = cost->attention(launch_of({128, 128, Mask::full, 1000})).time;
  CHECK(tiny.time == full_tile);
  CHECK(cost->attention(launch_of({129, 129, Mask::full, 1000})).time.seconds() - 10e-6 ==
        Approx(4 * (full_tile.seconds() - 10e-6)));
}

TEST_CASE("where heads share tiles, a short block takes one tile for the group of heads that share keys", "[cost]") {
  AttentionCurve curve = doubling_curve();  // tiles of 128 rows
  const auto alone = model_of(curve);
  curve.packs_heads = true;
  const auto packed = model_of(curve);
  // 16 heads over 4 of keys: groups of 4, whose 32 x 4 queries fill one tile. Two processors' worth of blocks each.
  const auto work = [](const CostModel& model, std::int64_t queries, std::int64_t heads_of_keys, Mask mask) {
    const AttentionBlock block{queries, mask == Mask::causal ? queries : 4096, mask, 100};
    return (model.attention({{block}, 16, heads_of_keys, 128, Direction::forward}).time - 10_us).seconds();
  };
  for (const Mask mask : {Mask::full, Mask::causal}) {
    CHECK(work(*packed, 32, 4, mask) == Approx(work(*alone, 32, 4, mask) / 4));
    CHECK(work(*packed, 96, 4, mask) == Approx(work(*alone, 96, 4, mask) * 3 / 4));  // 384 rows: 3 tiles for 4 heads
    CHECK(work(*packed, 32, 16, mask) == work(*alone, 32, 16, mask));                // a group of one head
    CHECK(work(*packed, 4096, 4, mask) == work(*alone, 4096, 4, mask));              // whole tiles anyway
  }
}

TEST_CASE("of a block with unlike sides the shorter one sets the rate", "[cost]") {
  const auto cost = model_of(doubling_curve());
  const double pairs = 16.0 * 1024 * 65536;
  CHECK(cost->attention(launch_of({1024, 65536, Mask::full, 2})).time.seconds() == Approx(10e-6 + 2 * pairs / 1e10));
  CHECK(cost->attention(launch_of({65536, 1024, Mask::full, 2})).time.seconds() == Approx(10e-6 + 2 * pairs / 1e10));
}

TEST_CASE("a launch that leaves processors idle takes as long as its longest row of tiles", "[cost]") {
  const auto cost = model_of(doubling_curve());
  // One head: 8 rows of 128 x 1,024 pairs on 100 processors, each of which computes 1e10 / 100 pairs a second.
  const Attention one_head{{{1024, 1024, Mask::full, 1}}, 1, 1, 128, Direction::forward};
  CHECK(cost->attention(one_head).time.seconds() == Approx(10e-6 + 128.0 * 1024 / (1e10 / 100)));
  // 13 heads have 104 rows, more than there are processors: work decides.
  const Attention many_heads{{{1024, 1024, Mask::full, 1}}, 13, 13, 128, Direction::forward};
  CHECK(cost->attention(many_heads).time.seconds() == Approx(10e-6 + 13.0 * 1024 * 1024 / 1e10));
}

TEST_CASE("time never falls when a block grows", "[cost]") {
  for (const char* name : {"bytescale-implied", "h100-published", "h200-published"}) {
    const auto cost = make_cost_model(shipped_profile(name));
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      for (const Mask mask : {Mask::causal, Mask::full}) {
        Duration before;
        for (std::int64_t length = 1; length < 3'000'000; length += 1 + length / 37) {
          INFO(name << ": " << length);
          const Duration time = cost->attention(launch_of({length, length, mask, 1}, direction)).time;
          REQUIRE(time >= before);
          before = time;
        }
      }
      Duration before;
      for (std::int64_t keys = 1; keys < 40'000; keys += 1 + keys / 37) {
        const Duration time = cost->attention(launch_of({4096, keys, Mask::full, 1}, direction)).time;
        REQUIRE(time >= before);
        before = time;
      }
    }
  }
}

TEST_CASE("cutting a block in two saves no time", "[cost]") {
  const auto cost = make_cost_model(shipped_profile("bytescale-implied"));
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    for (std::int64_t half = 64; half <= 1 << 17; half *= 2) {
      INFO(half);
      const Duration whole = cost->attention(launch_of({2 * half, 4096, Mask::full, 1}, direction)).time;
      const Duration halves = cost->attention(launch_of({half, 4096, Mask::full, 2}, direction)).time;
      const Duration launches = 2 * cost->attention(launch_of({half, 4096, Mask::full, 1}, direction)).time;
      CHECK(halves >= whole);
      CHECK(launches >= halves);
    }
  }
}

TEST_CASE("short documents lose efficiency", "[cost]") {
  const auto cost = make_cost_model(shipped_profile("bytescale-implied"));
  const auto tflops_of_pack = [&](std::int64_t document) {
    const std::int64_t count = 32768 / document;
    const Duration time = cost->attention(launch_of({document, document, Mask::causal, count})).time;
    const std::int64_t pairs = document * (document + 1) / 2 * count;
    return 4 * 16 * 128 * static_cast<double>(pairs) / time.seconds() * 1e-12;
  };
  double before = 0;
  for (std::int64_t document = 16; document <= 32768; document *= 2) {
    INFO(document);
    CHECK(tflops_of_pack(document) > before);
    before = tflops_of_pack(document);
  }
  // One tile of 128 x 64 a document of 64 tokens, of which 64 x 65 / 2 pairs are wanted.
  CHECK(tflops_of_pack(64) < 0.3 * tflops_of_pack(8192));
}

TEST_CASE("no table is faster than its data sheet", "[cost]") {
  for (const char* name : {"bytescale-implied", "h100-published", "h200-published"}) {
    const DeviceProfile profile = shipped_profile(name);
    const auto table = make_cost_model(profile);
    const FormulaCostModel roofline(profile.datasheet, Duration{});
    for (std::int64_t length = 1; length <= 1 << 20; length *= 4) {
      INFO(name << ": " << length);
      for (const Direction direction : {Direction::forward, Direction::backward}) {
        const Attention op = launch_of({length, length, Mask::causal, 1}, direction);
        CHECK(table->attention(op).time >= roofline.attention(op).time);
      }
      const Gemm product{length, 4096, 4096};
      CHECK(table->gemm(product).time >= roofline.gemm(product).time);
      const MemoryBound kernel{Bytes(length * 8192), 1};
      CHECK(table->memory_bound(kernel).time >= roofline.memory_bound(kernel).time);
    }
  }
}

TEST_CASE("only a sample of a measured profile counts as measured", "[cost]") {
  DeviceProfile profile = round_device();
  profile.attention = {doubling_curve()};
  const Attention sample = launch_of({4096, 4096, Mask::full, 1});
  CHECK(make_cost_model(profile)->attention(sample).evidence == Evidence::measured);
  CHECK(make_cost_model(profile)->attention(sample).time == profile.attention[0].samples[1].time);
  profile.provenance.label = ProfileLabel::published;
  CHECK(make_cost_model(profile)->attention(sample).evidence == Evidence::interpolated);
}

TEST_CASE("what has no samples takes the nearest kernel's time per FLOP and counts as extrapolated", "[cost]") {
  const auto cost = model_of(doubling_curve());
  const Duration net = cost->attention(launch_of({4096, 4096, Mask::full, 1})).time - 10_us;
  const Estimate backward = cost->attention(launch_of({4096, 4096, Mask::full, 1}, Direction::backward));
  CHECK(backward.time == 10_us + net.scaled(2.5));
  CHECK(backward.evidence == Evidence::extrapolated);
  const Estimate narrow = cost->attention({{{4096, 4096, Mask::full, 1}}, 16, 16, 64, Direction::forward});
  CHECK(narrow.time == 10_us + net.scaled(0.5));
  CHECK(narrow.evidence == Evidence::extrapolated);
  // A causal block of 32 x 32 tiles holds 32 x 33 / 2 of them.
  const Estimate causal = cost->attention(launch_of({4096, 4096, Mask::causal, 1}));
  CHECK(causal.time == 10_us + net.scaled(33.0 / 64));
  CHECK(causal.evidence == Evidence::extrapolated);
}

TEST_CASE("evidence of a launch is that of the larger part of its time", "[cost]") {
  const auto cost = model_of(doubling_curve());
  const AttentionBlock known{2048, 2048, Mask::full, 1};  // 16^2 tiles
  const AttentionBlock tiny{64, 64, Mask::full, 1};       // one tile
  CHECK(cost->attention({{known, tiny}, 16, 16, 128, Direction::forward}).evidence == Evidence::interpolated);
  AttentionBlock many = tiny;
  many.count = 1000;
  CHECK(cost->attention({{known, many}, 16, 16, 128, Direction::forward}).evidence == Evidence::extrapolated);
}

}  // namespace
}  // namespace hdpsim
