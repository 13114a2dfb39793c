#include "sim/model/mixing.h"

#include <algorithm>
#include <functional>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

Layer attention(std::int64_t window, std::int64_t chunk = 0) {
  Layer layer;
  layer.heads = layer.kv_heads = 2;
  layer.head_dim = 8;
  layer.window = window;
  layer.attention_chunk = chunk;
  return layer;
}

// Pairs that a mask leaves, counted one by one.
std::int64_t counted_pairs(std::int64_t tokens, const std::function<bool(std::int64_t, std::int64_t)>& sees) {
  std::int64_t pairs = 0;
  for (std::int64_t query = 0; query < tokens; ++query) {
    for (std::int64_t key = 0; key <= query; ++key) pairs += sees(query, key) ? 1 : 0;
  }
  return pairs;
}

double area_of(const std::vector<AttentionBlock>& blocks) {
  double area = 0;
  for (const AttentionBlock& block : blocks) {
    const auto queries = static_cast<double>(block.queries);
    const double each =
        block.mask == Mask::causal ? queries * (queries + 1) / 2 : queries * static_cast<double>(block.keys);
    area += each * static_cast<double>(block.count);
  }
  return area;
}

TEST_CASE("the area of every mask is what counting its pairs finds", "[mixing]") {
  for (const std::int64_t tokens : {1, 2, 7, 8, 9, 24, 25, 31}) {
    for (const std::int64_t reach : {1, 3, 8, 24, 100}) {
      CAPTURE(tokens, reach);
      const Layer window = attention(reach);
      CHECK(attention_area(window, tokens) ==
            static_cast<double>(counted_pairs(tokens, [&](auto query, auto key) { return query - key < reach; })));
      CHECK(area_of(attention_blocks(window, tokens)) == attention_area(window, tokens));
      const Layer chunks = attention(0, reach);
      CHECK(attention_area(chunks, tokens) == static_cast<double>(counted_pairs(tokens, [&](auto query, auto key) {
              return query / reach == key / reach;
            })));
      CHECK(area_of(attention_blocks(chunks, tokens)) == attention_area(chunks, tokens));
    }
    CHECK(attention_area(attention(0), tokens) == static_cast<double>(causal_area(tokens)));
  }
}

TEST_CASE("as many keys are chosen as a window of that length has", "[mixing][indexer]") {
  Layer layer = attention(0);
  layer.latent = LatentAttention{.kv_rank = 16, .rotated = 4};
  layer.indexer = KeyIndexer{.heads = 3, .head_dim = 6, .keys = 24};
  for (const std::int64_t tokens : {1, 24, 25, 1000}) {
    CHECK(attention_area(layer, tokens) == attention_area(attention(24), tokens));
    CHECK(area_of(attention_blocks(layer, tokens)) == attention_area(layer, tokens));
  }
  CHECK(attention_blocks(layer, 1000).size() == 2);  // a triangle, and queries that have as many keys each
  CHECK(most_keys(layer) == 24);
  CHECK(attention_reach(layer) == 0);  // they may be any before it
}

TEST_CASE("a head multiplies the latents of chosen keys, and the indexer's heads the keys of all tokens before",
          "[mixing][indexer]") {
  Layer layer = attention(0);
  layer.latent = LatentAttention{.kv_rank = 16, .rotated = 4};
  layer.indexer = KeyIndexer{.heads = 3, .head_dim = 6, .keys = 24};
  CHECK(attention_flops(layer, 10, Direction::forward).count() == 2.0 * 2 * (16 + 4 + 16) * 10);
  const double pairs = static_cast<double>(causal_area(100));
  CHECK(indexer_flops(layer, 100, Direction::forward).count() == 2.0 * 3 * 6 * pairs);
  CHECK(indexer_flops(layer, 100, Direction::backward).count() == 3 * 2.0 * 3 * 6 * attention_area(layer, 100));
  layer.indexer->heads = 0;  // the choice of another layer
  CHECK(indexer_flops(layer, 100, Direction::forward).count() == 0);
}

TEST_CASE("a window's area grows with the tokens, not with their square", "[mixing]") {
  const Layer layer = attention(128);
  const double once = attention_area(layer, 1 << 20);
  CHECK(attention_area(layer, 1 << 21) / once == Approx(2).epsilon(1e-3));
  CHECK(attention_blocks(layer, 1 << 20).size() <= 3);  // and so does no list of blocks
}

TEST_CASE("keys and values of unlike widths count as they are", "[mixing]") {
  Layer layer = attention(0);
  layer.head_dim = 192;
  layer.value_dim = 128;
  // A pair of a head: a product over 192 columns, and 128 columns of a value.
  CHECK(attention_flops(layer, 10, Direction::forward).count() == 2.0 * 2 * (192 + 128) * 10);
  CHECK(attention_flops(layer, 10, Direction::backward).count() == 2.5 * 2.0 * 2 * (192 + 128) * 10);
}

// Multiplications of the chunks of one head, added up chunk by chunk.
double multiplications(const LinearMixing& mixing, std::int64_t tokens) {
  double sum = 0;
  for (std::int64_t begin = 0; begin < tokens; begin += mixing.chunk) {
    const auto chunk = static_cast<double>(mixing.chunk);
    const auto keys = static_cast<double>(mixing.key_dim);
    const auto values = static_cast<double>(mixing.value_dim);
    sum += chunk * chunk * keys * static_cast<double>(mixing.key_heads) / static_cast<double>(mixing.heads);
    sum += chunk * chunk * values + 2 * chunk * keys * values;
    if (mixing.delta_rule) {
      sum += chunk * chunk * (keys + chunk / 3 + keys + values) + chunk * keys * values;
    }
  }
  return sum;
}

TEST_CASE("linear mixing multiplies what its chunks multiply, and twice the tokens take twice as much", "[mixing]") {
  for (const bool delta_rule : {false, true}) {
    const LinearMixing mixing{
        .heads = 4, .key_heads = 2, .key_dim = 16, .value_dim = 32, .chunk = 48, .delta_rule = delta_rule};
    const auto products = [&](std::int64_t tokens, std::int64_t tp) {
      double sum = 0;
      for (const Gemm& gemm : mixing_products(mixing, tokens, tp)) {
        sum += static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
      }
      return sum;
    };
    CHECK(products(480, 1) == Approx(4 * multiplications(mixing, 480)));
    CHECK(products(960, 1) == Approx(2 * products(480, 1)));
    CHECK(products(480, 2) == Approx(products(480, 1) / 2));
  }
}

TEST_CASE("backward of the delta rule first makes the states again, and what it put into them", "[mixing]") {
  LinearMixing mixing{.heads = 4, .key_heads = 2, .key_dim = 16, .value_dim = 32, .chunk = 48};
  CHECK(products_again(mixing, 480, 1).empty());
  mixing.delta_rule = true;
  double sum = 0;
  for (const Gemm& gemm : products_again(mixing, 480, 1)) {
    sum += static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  }
  // Of ten chunks of four heads: the triangle with keys and values, the states, and what they held.
  CHECK(sum == 4 * 10 * (48.0 * 48 * (16 + 32) + 2 * 48 * 16 * 32));
}

TEST_CASE("a state is a matrix in fp32 for every head of a device", "[mixing]") {
  const LinearMixing mixing{.heads = 4, .key_heads = 2, .key_dim = 16, .value_dim = 32, .chunk = 64};
  CHECK(state_bytes(mixing, 1) == Bytes(4 * 16 * 32 * 4));
  CHECK(state_bytes(mixing, 2) == Bytes(2 * 16 * 32 * 4));
}

}  // namespace
}  // namespace hdpsim
