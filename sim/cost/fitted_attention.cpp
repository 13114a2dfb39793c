#include "sim/cost/fitted_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/cost/impl/sampled_kernels.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

constexpr std::int64_t tabulated_tiles = 1024;

}  // namespace

FittedAttention::FittedAttention(const AttentionFit& fit, std::int64_t multiprocessors)
    : fit_(fit), multiprocessors_(multiprocessors), step_(std::gcd(fit.tile_queries, fit.tile_keys)) {
  for (const PairCost& pair : fit.pairs) pairs_.add(static_cast<double>(pair.length), pair.seconds);
  for (std::int64_t tile = 1; tile <= tabulated_tiles; ++tile) {
    seconds_by_tile_.push_back(pairs_.at(static_cast<double>(tile * step_)));
  }
}

double FittedAttention::pair_seconds(std::int64_t length) const {
  const std::int64_t tile = length / step_;
  if (tile <= tabulated_tiles) return seconds_by_tile_[static_cast<std::size_t>(tile - 1)];
  return pairs_.at(static_cast<double>(length));
}

double FittedAttention::area(const AttentionBlock& block) const {
  const auto in_tiles = [&](std::int64_t tile_queries, std::int64_t tile_keys) {
    const std::int64_t area = block.mask == Mask::causal
                                  ? causal_tile_area(block.queries, tile_queries, tile_keys)
                                  : rounded_up(block.queries, tile_queries) * rounded_up(block.keys, tile_keys);
    return static_cast<double>(area);
  };
  const double area = in_tiles(fit_.tile_queries, fit_.tile_keys);
  if (!fit_.backward || fit_.gradient_tile_queries == 0) return area;
  constexpr double gradients_share = 2.0 / 5;  // dK and dV among S, dP, dQ, dK and dV
  return std::lerp(area, in_tiles(fit_.gradient_tile_queries, fit_.gradient_tile_keys), gradients_share);
}

FittedAttention::BlockCost FittedAttention::cost(const AttentionBlock& block, std::int64_t heads,
                                                 std::int64_t kv_heads) const {
  if (block.queries <= 0 || block.keys <= 0 || block.count <= 0) return {};
  const std::int64_t queries = rounded_up(block.queries, fit_.tile_queries);
  const std::int64_t keys = rounded_up(block.keys, fit_.tile_keys);
  // A row of forward is a tile of queries against all keys, a row of backward a tile of keys against all queries.
  const std::int64_t row = fit_.backward ? fit_.tile_keys * queries : fit_.tile_queries * keys;
  const std::int64_t rows_of_tiles = fit_.backward ? keys / fit_.tile_keys : queries / fit_.tile_queries;
  const auto copies = static_cast<double>(heads * block.count);

  BlockCost cost;
  cost.area = area(block) * copies;
  cost.seconds = pair_seconds(std::min(queries, keys)) * cost.area;
  cost.longest_row = static_cast<double>(row * multiprocessors_);
  cost.row_seconds = pair_seconds(fit_.backward ? queries : keys) * cost.longest_row;
  cost.tile_rows = static_cast<double>(rows_of_tiles) * copies;
  const std::int64_t rows = (block.queries * heads + block.keys * kv_heads) * block.count;
  cost.other_seconds =
      fit_.row_s * static_cast<double>(rows) + fit_.tile_row_s * cost.tile_rows + fit_.document_s * copies;
  cost.outside =
      std::min(block.queries, block.keys) < fit_.shortest || std::max(block.queries, block.keys) > fit_.longest;
  return cost;
}

FittedLaunch fitted_launch(const std::array<const FittedAttention*, 2>& kernels, const Attention& op) {
  FittedLaunch launch;
  FittedAttention::BlockCost longest;
  double seconds = 0;
  double other = 0;
  double tile_rows = 0;
  double start = 0;
  double wave = 0;
  std::int64_t multiprocessors = 1;
  for (const AttentionBlock& block : op.blocks) {
    const FittedAttention& kernel = *kernels[static_cast<std::size_t>(block.mask)];
    const FittedAttention::BlockCost cost = kernel.cost(block, op.heads, op.kv_heads);
    launch.area += cost.area;
    if (cost.outside) launch.outside_area += cost.area;
    seconds += cost.seconds;
    other += cost.other_seconds;
    tile_rows += cost.tile_rows;
    if (cost.longest_row > longest.longest_row) longest = cost;
    start = std::max(start, kernel.fit().launch_s);
    wave = std::max(wave, kernel.fit().wave_s);
    multiprocessors = kernel.multiprocessors();
  }
  if (launch.area == 0) return {};
  const double pairs = longest.longest_row > launch.area ? longest.row_seconds : seconds;
  launch.seconds = start + pairs + other + wave * std::ceil(tile_rows / static_cast<double>(multiprocessors));
  return launch;
}

}  // namespace hdpsim
