#include <array>

#include "calib/fit/impl/families.h"
#include "sim/cost/fitted_attention.h"
#include "tests/unit/calib/fit/fit_support.h"

namespace hdpsim::calib {
namespace {

using testing::mean_of_normal;
using testing::Measured;
using testing::round_circumstances;

AttentionFit forward_law() {
  AttentionFit law;
  law.causal = true;
  law.head_dim = 128;
  law.tile_queries = 128;
  law.tile_keys = 128;
  law.launch_s = 8e-6;
  law.pairs = {{128, 1e-12}};
  law.row_s = 2e-11;
  return law;
}

Attention launch(std::vector<AttentionBlock> blocks, std::int64_t heads = 32) {
  return {std::move(blocks), heads, 8, 128, Direction::forward};
}

/// Lengths from 512 to 64 Ki, one and four documents each, and packs of unlike documents.
std::vector<Attention> launches(Mask mask) {
  std::vector<Attention> all;
  for (std::int64_t length = 512; length <= 65536; length *= 2) {
    for (const std::int64_t count : {1, 4}) all.push_back(launch({{length, length, mask, count}}));
    all.push_back(launch({{length + 77, length + 77, mask, 1}}));
  }
  RandomStream random(1, "documents");
  for (int pack = 0; pack < 12; ++pack) {
    std::vector<AttentionBlock> blocks;
    for (int document = 0; document < 40; ++document) {
      const auto length = static_cast<std::int64_t>(64 * std::exp2(7 * random.uniform()));
      blocks.push_back({length, length, mask, 1});
    }
    all.push_back(launch(blocks));
  }
  return all;
}

std::vector<AttentionTiming> timed(const AttentionFit& law, const std::vector<Attention>& ops, double noise,
                                   std::int64_t multiprocessors = 100) {
  const FittedAttention kernel(law, multiprocessors);
  Measured measured(noise);
  std::vector<AttentionTiming> samples;
  for (const Attention& op : ops) samples.push_back({op, measured(fitted_launch({&kernel, &kernel}, op).seconds)});
  return samples;
}

TEST_CASE("the coefficients of an attention law are recovered from exact times", "[fit]") {
  const AttentionFit law = forward_law();
  const AttentionFit found = fit_attention(timed(law, launches(Mask::causal), 0), round_circumstances(), 1);
  CHECK(found.form == "launch + rows + pairs");
  CHECK(found.launch_s == Approx(law.launch_s).epsilon(1e-6));
  CHECK(found.row_s == Approx(law.row_s).epsilon(1e-6));
  REQUIRE(found.pairs.size() == 1);
  CHECK(found.pairs[0].seconds == Approx(law.pairs[0].seconds).epsilon(1e-6));
  CHECK(found.quality.held_out.max <= 1e-6);
  CHECK(found.causal);
  CHECK_FALSE(found.backward);
}

TEST_CASE("with noise the held-out error of attention is about the noise, packed documents too", "[fit]") {
  for (const double noise : {0.01, 0.03}) {
    CAPTURE(noise);
    const AttentionFit law = forward_law();
    const AttentionFit found = fit_attention(timed(law, launches(Mask::causal), noise), round_circumstances(), 1);
    CHECK(found.pairs.back().seconds == Approx(1e-12).epsilon(noise));
    CHECK(found.quality.held_out.mean <= 1.5 * mean_of_normal * noise);
    REQUIRE(found.packed.has_value());
    CHECK(found.packed->samples == 12);
    CHECK(found.packed->held_out.mean <= 2 * mean_of_normal * noise);
    CHECK(found.shortest == 64);
    CHECK(found.longest == 65536 + 77);
  }
}

TEST_CASE("whatever the law, what it says of launches that were left out is about as good as the samples", "[fit]") {
  constexpr double noise = 0.01;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    RandomStream random(seed, "law");
    AttentionFit law = forward_law();
    law.launch_s = 2e-5 * random.uniform();
    law.pairs[0].seconds = 1e-12 * std::exp2(2 * random.uniform());
    law.row_s = 1e-10 * random.uniform();
    law.document_s = random.uniform() < 0.5 ? 0 : 1e-8 * random.uniform();
    const Mask mask = random.uniform() < 0.5 ? Mask::causal : Mask::full;
    CAPTURE(seed, law.launch_s, law.pairs[0].seconds, law.row_s, law.document_s);
    const AttentionFit found = fit_attention(timed(law, launches(mask), noise), round_circumstances(), seed);
    INFO(found.form);
    CHECK(found.quality.held_out.mean <= 2 * mean_of_normal * noise);
    CHECK(found.packed->held_out.mean <= 3 * mean_of_normal * noise);
  }
}

TEST_CASE("a backward kernel is fitted over the tiles of its gradients, a forward kernel is not", "[fit]") {
  AttentionFit law = forward_law();
  law.backward = true;
  law.gradient_tile_queries = 1;
  law.gradient_tile_keys = 12;
  std::vector<Attention> ops = launches(Mask::causal);
  Circumstances device = round_circumstances();
  device.attention_gradient_tile_queries = law.gradient_tile_queries;
  device.attention_gradient_tile_keys = law.gradient_tile_keys;
  CHECK(fit_attention(timed(forward_law(), ops, 0), device, 1).gradient_tile_queries == 0);
  for (Attention& op : ops) op.direction = Direction::backward;
  const AttentionFit found = fit_attention(timed(law, ops, 0), device, 1);
  CHECK(found.gradient_tile_keys == 12);
  CHECK(found.quality.held_out.max <= 1e-6);
}

TEST_CASE("a kernel that is slow on short documents gets a cost of a pair by length", "[fit]") {
  AttentionFit law = forward_law();
  law.row_s = 0;
  law.pairs = {{128, 5e-12}, {2048, 1e-12}};
  const AttentionFit found = fit_attention(timed(law, launches(Mask::causal), 0.005), round_circumstances(), 1);
  INFO(found.form);
  REQUIRE(found.pairs.size() > 1);
  CHECK(found.quality.held_out.mean <= 2 * mean_of_normal * 0.005);
  CHECK(found.pairs.front().seconds > 3 * found.pairs.back().seconds);
}

TEST_CASE("on one core there are no idle multiprocessors to tell apart", "[fit]") {
  const AttentionFit law = forward_law();
  const AttentionFit found = fit_attention(timed(law, launches(Mask::causal), 0, 1), round_circumstances(1), 1);
  CHECK(found.quality.held_out.max <= 1e-6);
}

// One sequence, 64 query and 8 key-value heads of 128, bf16, on an H200 with 132 multiprocessors: cuDNN 9.19 in the
// benchmark results of cudnn-frontend, in milliseconds at 2,048 ... 32,768 tokens.
struct PublishedCurve {
  const char* name;
  Mask mask;
  Direction direction;
  std::array<double, 5> milliseconds;
};
const std::array<PublishedCurve, 4> cudnn_on_h200 = {{
    {"causal forward", Mask::causal, Direction::forward, {0.142, 0.465, 1.708, 6.531, 25.57}},
    {"causal backward", Mask::causal, Direction::backward, {0.464, 1.450, 5.083, 19.00, 75.69}},
    {"full forward", Mask::full, Direction::forward, {0.217, 0.819, 3.182, 12.52, 50.77}},
    {"full backward", Mask::full, Direction::backward, {0.681, 2.453, 9.262, 35.95, 153.8}},
}};

TEST_CASE("cuDNN's published times on an H200 are fitted within 2 % on average", "[fit]") {
  for (const PublishedCurve& curve : cudnn_on_h200) {
    INFO(curve.name);
    std::vector<AttentionTiming> samples;
    std::int64_t length = 2048;
    for (const double milliseconds : curve.milliseconds) {
      const Attention op{{{length, length, curve.mask, 1}}, 64, 8, 128, curve.direction};
      samples.push_back({op, {milliseconds * 1e-3, milliseconds * 1e-3, milliseconds * 1e-3, 0, 1}});
      length *= 2;
    }
    const AttentionFit found = fit_attention(samples, round_circumstances(132), 1);
    INFO(found.form << ": mean " << found.quality.in_sample.mean << ", held out " << found.quality.held_out.mean);
    CHECK(found.quality.in_sample.mean <= 0.02);
    CHECK(found.quality.in_sample.max <= 0.05);
  }
}

}  // namespace
}  // namespace hdpsim::calib
