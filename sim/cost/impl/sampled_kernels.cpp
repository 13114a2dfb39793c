#include "sim/cost/impl/sampled_kernels.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/division.h"
#include "sim/cost/impl/formula.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

constexpr double same_size = 1e-9;  // relative

constexpr std::int64_t tabulated_steps = 1024;

// Tokens of a rank squared leave no room for heads in 64 bits.
double product(std::int64_t area, std::int64_t blocks, std::int64_t heads) {
  return static_cast<double>(area) * static_cast<double>(blocks) * static_cast<double>(heads);
}

}  // namespace

void LogCurve::add(double size, double value) {
  const auto after =
      std::find_if(knots_.begin(), knots_.end(), [&](const Knot& knot) { return knot.size >= size * (1 - same_size); });
  if (after != knots_.end() && after->size <= size * (1 + same_size)) {
    after->value = (after->value * after->samples + value) / (after->samples + 1);
    ++after->samples;
  } else {
    knots_.insert(after, {size, std::log2(size), value, 1});
  }
}

double LogCurve::at(double size) const {
  if (size <= knots_.front().size) return knots_.front().value;
  if (size >= knots_.back().size) return knots_.back().value;
  const auto above =
      std::upper_bound(knots_.begin(), knots_.end(), size, [](double s, const Knot& knot) { return s < knot.size; });
  const Knot& high = *above;
  const Knot& low = *(above - 1);
  const double share = (std::log2(size) - low.log_size) / (high.log_size - low.log_size);
  return low.value + share * (high.value - low.value);
}

bool LogCurve::covers(double size) const {
  return !knots_.empty() && size >= knots_.front().size * (1 - same_size) &&
         size <= knots_.back().size * (1 + same_size);
}

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
    const Tiles tiles = this->tiles(sample.queries, sample.keys, curve.causal, 1);
    const double all_rows = product(tiles.area, sample.count, curve.heads);
    const double pairs = std::max(all_rows, static_cast<double>(tiles.row) * multiprocessors_);
    rates_.add(static_cast<double>(tiles.length), pairs / (sample.time - curve.launch).seconds());
  }
  for (std::int64_t step = 1; step <= tabulated_steps; ++step) {
    seconds_by_step_.push_back(1 / rates_.at(static_cast<double>(step * step_)));
  }
}

AttentionKernel::Tiles AttentionKernel::tiles(std::int64_t queries, std::int64_t keys, bool causal,
                                              std::int64_t together) const {
  const std::int64_t rounded_queries = rounded_up(queries * together, curve_.tile_queries);
  const std::int64_t rounded_keys = rounded_up(keys, causal ? causal_tile_keys_ : curve_.tile_keys);
  // A row of forward is a tile of queries against all keys, a row of backward a tile of keys against all queries.
  const std::int64_t row =
      curve_.backward ? std::min(curve_.tile_keys, rounded_keys) * rounded_queries : curve_.tile_queries * rounded_keys;
  // A tile's rows end with a token, so that a group that does not divide them leaves some empty.
  const std::int64_t tokens = std::max<std::int64_t>(1, curve_.tile_queries / together);
  const std::int64_t area = causal ? causal_tile_area(queries, tokens, causal_tile_keys_) / tokens * curve_.tile_queries
                                   : rounded_queries * rounded_keys;
  const std::int64_t inner = curve_.backward ? rounded_queries : rounded_keys;
  return {area, row, std::min(rounded_queries, rounded_keys), inner};
}

// By the share of a tile's rows that hold queries (FlashAttention-3, hopper/heuristics.h).
std::int64_t AttentionKernel::heads_in_tile(std::int64_t queries, std::int64_t heads, std::int64_t kv_heads) const {
  if (!curve_.packs_heads || kv_heads == 0) return 1;
  const auto filled = [&](std::int64_t rows) {
    return static_cast<double>(rows) / static_cast<double>(rounded_up(rows, curve_.tile_queries));
  };
  constexpr double worth_it = 0.9;
  const std::int64_t group = std::min(heads / kv_heads, curve_.tile_queries);
  return filled(queries) < worth_it * filled(queries * group) ? group : 1;
}

double AttentionKernel::seconds_per_pair(std::int64_t length) const {
  const std::int64_t step = length / step_;
  if (step <= tabulated_steps) return seconds_by_step_[static_cast<std::size_t>(step - 1)];
  return 1 / rates_.at(static_cast<double>(length));
}

AttentionKernel::BlockCost AttentionKernel::cost(const AttentionBlock& block, std::int64_t heads,
                                                 std::int64_t kv_heads) const {
  if (block.queries <= 0 || block.keys <= 0 || block.count <= 0) return {};
  const bool causal = block.mask == Mask::causal;
  const std::int64_t together = heads_in_tile(block.queries, heads, kv_heads);
  const Tiles tiles = this->tiles(block.queries, block.keys, causal, together);
  return {seconds_per_pair(tiles.length) * product(tiles.area, block.count, divided(heads, together)),
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

double wave_rounded_work(const GemmTile& tile, std::int64_t multiprocessors, const Gemm& op) {
  const std::int64_t tiles = op.count * divided(op.m, tile.m) * divided(op.n, tile.n);
  const std::int64_t waves = divided(tiles, multiprocessors);
  const std::int64_t charged = waves > 1 ? waves * multiprocessors : tiles;
  return 2.0 * static_cast<double>(charged * tile.m * tile.n) * static_cast<double>(op.k);
}

GemmKernel::GemmKernel(const GemmTable& table, const Datasheet& datasheet, Bandwidth memory)
    : tile_{table.tile_m, table.tile_n},
      multiprocessors_(datasheet.multiprocessors),
      launch_seconds_(table.launch.seconds()),
      full_rate_(table.full_rate.per_second()),
      memory_bandwidth_(static_cast<double>(memory.bytes_per_second())) {
  constexpr double flop_per_gflop = 1e9;
  for (const GemmWorkSample& sample : table.by_work) by_work_.add(sample.gflop * flop_per_gflop, sample.efficiency);
  for (const GemmShapeSample& sample : table.by_shape) {
    const double work = wave_rounded_work(tile_, multiprocessors_, {sample.m, sample.n, sample.k});
    const double efficiency = work / ((sample.time.seconds() - launch_seconds_) * full_rate_);
    WeightShape& shape = by_shape_[{sample.n, sample.k}];
    shape.efficiency.add(static_cast<double>(sample.m), efficiency);
    shape.seconds[sample.m] = sample.time.seconds();
    by_work_.add(work, efficiency);
  }
}

GemmKernel::Cost GemmKernel::cost(const Gemm& op) const {
  const double work = wave_rounded_work(tile_, multiprocessors_, op);
  const auto m = static_cast<double>(op.m);
  double efficiency = 0;
  bool covered = false;
  const auto shape = by_shape_.empty() ? by_shape_.end() : by_shape_.find({op.n, op.k});
  if (shape != by_shape_.end()) {
    const auto sample = shape->second.seconds.find(op.m);
    if (sample != shape->second.seconds.end() && op.count == 1) return {sample->second, true, false};
    efficiency = shape->second.efficiency.at(m);
    covered = shape->second.efficiency.covers(m);
  } else {
    efficiency = by_work_.at(work);
    covered = by_work_.covers(work);
  }
  const double seconds = std::max(work / (efficiency * full_rate_), gemm_bytes(op) / memory_bandwidth_);
  return {launch_seconds_ + seconds, false, !covered};
}

}  // namespace hdpsim
