#include "sim/cost/impl/attention_kernel.h"

#include <algorithm>
#include <numeric>

#include "sim/model/shares.h"

namespace hdpsim {
namespace {

constexpr std::int64_t tabulated_steps = 1024;

// Tokens of a rank squared leave no room for heads in 64 bits.
double product(std::int64_t area, std::int64_t blocks, std::int64_t heads) {
  return static_cast<double>(area) * static_cast<double>(blocks) * static_cast<double>(heads);
}

}  // namespace

bool one_divides_other(std::int64_t a, std::int64_t b) {
  return a % b == 0 || b % a == 0;
}

std::int64_t causal_tile_area(std::int64_t tokens, std::int64_t tile_queries, std::int64_t tile_keys) {
  const std::int64_t rows = divided(tokens, tile_queries);
  if (tile_queries % tile_keys == 0) {
    // Row i of 1..n ends at key i tile_queries, a whole number of key tiles; the last one at the end of the block.
    return tile_queries * (tile_queries * (rows * (rows - 1) / 2) + rounded_up(tokens, tile_keys));
  }
  // Row i needs ceil(i a / b) key tiles, where a / b is the ratio of the tile's sides in lowest terms: a more in every
  // round of b rows. The last row ends with the block.
  const std::int64_t common = std::gcd(tile_queries, tile_keys);
  const std::int64_t a = tile_queries / common;
  const std::int64_t b = tile_keys / common;
  const auto first_rows = [&](std::int64_t count) {
    std::int64_t sum = 0;
    for (std::int64_t i = 1; i <= count; ++i) sum += (i * a + b - 1) / b;
    return sum;
  };
  const std::int64_t full_rows = rows - 1;
  const std::int64_t rounds = full_rows / b;
  const std::int64_t rest = full_rows % b;
  const std::int64_t of_rounds = rounds > 0 ? rounds * first_rows(b) : 0;
  const std::int64_t key_tiles = of_rounds + a * b * (rounds * (rounds - 1) / 2) + first_rows(rest) +
                                 a * rounds * rest + divided(tokens, tile_keys);
  return tile_queries * tile_keys * key_tiles;
}

AttentionKernel::AttentionKernel(const AttentionCurve& curve, std::int64_t multiprocessors)
    : curve_(curve),
      multiprocessors_(static_cast<double>(multiprocessors)),
      causal_tile_keys_(curve.causal || one_divides_other(curve.tile_queries, curve.tile_keys) ? curve.tile_keys
                                                                                               : curve.tile_queries),
      step_(std::gcd(curve.tile_queries, curve.tile_keys)) {
  for (const AttentionSample& sample : curve.samples) {
    const Tiles tiles = this->tiles(sample.queries, sample.keys, curve.causal);
    const double all_rows = product(tiles.area, sample.count, curve.heads);
    const double pairs = std::max(all_rows, static_cast<double>(tiles.row) * multiprocessors_);
    rates_.add(static_cast<double>(tiles.length), pairs / (sample.time - curve.launch).seconds());
  }
  for (std::int64_t step = 1; step <= tabulated_steps; ++step) {
    seconds_by_step_.push_back(1 / rates_.at(static_cast<double>(step * step_)));
  }
}

AttentionKernel::Tiles AttentionKernel::tiles(std::int64_t queries, std::int64_t keys, bool causal) const {
  const std::int64_t rounded_queries = rounded_up(queries, curve_.tile_queries);
  const std::int64_t rounded_keys = rounded_up(keys, causal ? causal_tile_keys_ : curve_.tile_keys);
  // A row of forward is a tile of queries against all keys, a row of backward a tile of keys against all queries.
  const std::int64_t row =
      curve_.backward ? std::min(curve_.tile_keys, rounded_keys) * rounded_queries : curve_.tile_queries * rounded_keys;
  const std::int64_t area =
      causal ? causal_tile_area(queries, curve_.tile_queries, causal_tile_keys_) : rounded_queries * rounded_keys;
  const std::int64_t inner = curve_.backward ? rounded_queries : rounded_keys;
  return {area, row, std::min(rounded_queries, rounded_keys), inner};
}

double AttentionKernel::seconds_per_pair(std::int64_t length) const {
  const std::int64_t step = length / step_;
  if (step <= tabulated_steps) return seconds_by_step_[static_cast<std::size_t>(step - 1)];
  return 1 / rates_.at(static_cast<double>(length));
}

AttentionKernel::BlockCost AttentionKernel::cost(const AttentionBlock& block, std::int64_t heads) const {
  if (block.queries <= 0 || block.keys <= 0 || block.count <= 0) return {};
  const bool causal = block.mask == Mask::causal;
  const Tiles tiles = this->tiles(block.queries, block.keys, causal);
  return {seconds_per_pair(tiles.length) * product(tiles.area, block.count, heads),
          seconds_per_pair(tiles.inner) * static_cast<double>(tiles.row) * multiprocessors_,
          causal != curve_.causal || !rates_.covers(static_cast<double>(tiles.length))};
}

const AttentionSample* AttentionKernel::sample(const AttentionBlock& block, std::int64_t heads) const {
  if (heads != curve_.heads || (block.mask == Mask::causal) != curve_.causal) return nullptr;
  const auto found = std::find_if(curve_.samples.begin(), curve_.samples.end(), [&](const AttentionSample& s) {
    return s.queries == block.queries && s.keys == block.keys && s.count == block.count;
  });
  return found == curve_.samples.end() ? nullptr : &*found;
}

}  // namespace hdpsim
