#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/model/operation.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// A positive quantity known at some sizes: linear in the logarithm of the size between them, constant beyond both
/// ends.
class LogCurve {
 public:
  /// Adds a knot. Knots at (nearly) one size are merged to their mean.
  void add(double size, double value);
  [[nodiscard]] double at(double size) const;
  [[nodiscard]] bool covers(double size) const;
  [[nodiscard]] bool empty() const { return knots_.empty(); }

 private:
  struct Knot {
    double size;
    double log_size;
    double value;
    int samples;
  };
  std::vector<Knot> knots_;  // by size
};

/// (query, key) pairs that a kernel computes for a causal block of `tokens`, in whole tiles. O(longer side of the tile
/// / greatest common divisor).
[[nodiscard]] std::int64_t causal_tile_area(std::int64_t tokens, std::int64_t tile_queries, std::int64_t tile_keys);

[[nodiscard]] bool one_divides_other(std::int64_t a, std::int64_t b);

/// One measured kernel: the time per pair of a block, by the size of the block.
///
/// A kernel works in tiles, so a block costs its tile-rounded area A_tile and the samples are read that way: with the
/// exact area A and the published rate R = w A / t (w FLOPs per pair), R_tile = w A_tile / t = R A_tile / A. R varies
/// like A / A_tile and drops to zero for blocks of a few tokens; R_tile is smooth, which an interpolation needs. It is
/// linear in log(length) between samples and constant beyond them: a block of one token costs one whole tile at the
/// speed of the shortest sample.
///
/// The length of a block is its shorter side. One side of a block is the kernel's inner loop and amortises its start,
/// the other fills the device; published curves vary both together, so the shorter one is the pessimistic reading. It
/// is rounded up to whole tiles, so that time grows with length inside a tile too.
///
/// Where a kernel packs heads (AttentionCurve::packs_heads), a tile of T rows holds the queries of T / g tokens for the
/// g heads that share keys, as FlashAttention-3 does where it fills tiles better (hopper/heuristics.h,
/// should_pack_gqa): a document of few tokens then costs one tile for g heads.
class AttentionKernel {
 public:
  AttentionKernel(const AttentionCurve& curve, std::int64_t multiprocessors);

  struct BlockCost {
    double all_rows = 0;     ///< Seconds of all its tiles when the device is full.
    double longest_row = 0;  ///< Seconds of the longest row of tiles, which one multiprocessor computes alone.
    bool extrapolated = false;
  };
  /// `kv_heads` divide `heads`.
  [[nodiscard]] BlockCost cost(const AttentionBlock& block, std::int64_t heads, std::int64_t kv_heads) const;

  /// The sample with exactly this launch; nullptr if there is none.
  [[nodiscard]] const AttentionSample* sample(const AttentionBlock& block, std::int64_t heads) const;

  [[nodiscard]] bool causal() const { return curve_.causal; }
  [[nodiscard]] bool backward() const { return curve_.backward; }
  [[nodiscard]] std::int64_t head_dim() const { return curve_.head_dim; }
  [[nodiscard]] std::int64_t heads() const { return curve_.heads; }
  [[nodiscard]] double launch_seconds() const { return curve_.launch.seconds(); }
  /// Whether its samples name a source of their own, apart from that of the profile.
  [[nodiscard]] bool is_of_others() const { return !curve_.source.empty(); }

 private:
  struct Tiles {
    std::int64_t area = 0;    ///< Pairs of one block, of the heads that share its tiles.
    std::int64_t row = 0;     ///< Pairs in the longest row of tiles.
    std::int64_t length = 0;  ///< Shorter side, in whole tiles.
    std::int64_t inner = 0;   ///< The side along a row.
  };
  /// `together`: the heads whose queries are rows of one tile.
  [[nodiscard]] Tiles tiles(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t together) const;
  /// The heads whose queries are rows of one tile.
  [[nodiscard]] std::int64_t heads_in_tile(std::int64_t queries, std::int64_t heads, std::int64_t kv_heads) const;
  [[nodiscard]] double seconds_per_pair(std::int64_t length) const;

  AttentionCurve curve_;
  double multiprocessors_;
  // Tile side for causal blocks, also if the kernel's own tile does not suit them.
  std::int64_t causal_tile_keys_;
  std::int64_t step_;                    // every length is a multiple of it
  LogCurve rates_;                       // pairs a second over the whole device
  std::vector<double> seconds_by_step_;  // 1 / rates_ at the first multiples of step_
};

/// The tile of a product that one multiprocessor computes at a time.
struct GemmTile {
  std::int64_t m = 0;
  std::int64_t n = 0;
};

/// FLOPs of a product in whole tiles and, beyond one wave, in whole waves of the multiprocessors.
[[nodiscard]] double wave_rounded_work(const GemmTile& tile, std::int64_t multiprocessors, const Gemm& op);

/// Matrix products: wave-rounded work at an efficiency that depends on the work or, for measured weight shapes (n, k),
/// on m.
///
/// A product is cut in tiles that the multiprocessors compute in waves; its last wave takes as long as a full one. So a
/// product of more than one wave costs ceil(tiles / multiprocessors) full waves, and samples by shape are read that way
/// too. A product of less than a wave is not charged for idle multiprocessors: libraries then use smaller tiles or
/// split k, and the loss is in the falloff of the efficiency with work. Samples by work are of products that fill their
/// waves.
///
/// No product is faster than what it reads and writes at `memory`, the bandwidth that kernels achieve. This limits
/// batches of products over a short inner side, as in unfused attention: PyTorch's bmm of 512 x (1024 x 128 x 1024) in
/// bf16 takes 1.04 ms on an A100 (pytorch#83272), its 1.34 GB at 1.3 TB/s.
class GemmKernel {
 public:
  GemmKernel(const GemmTable& table, const Datasheet& datasheet, Bandwidth memory);

  struct Cost {
    double seconds = 0;
    bool sampled = false;  ///< The shape is a sample's.
    bool extrapolated = false;
  };
  [[nodiscard]] Cost cost(const Gemm& op) const;

 private:
  struct WeightShape {
    LogCurve efficiency;                     // by m
    std::map<std::int64_t, double> seconds;  // times of the samples, by m
  };

  GemmTile tile_;
  std::int64_t multiprocessors_;
  double launch_seconds_;
  double full_rate_;                                                       // FLOP/s
  double memory_bandwidth_;                                                // B/s
  LogCurve by_work_;                                                       // efficiency by wave-rounded FLOPs
  std::map<std::pair<std::int64_t, std::int64_t>, WeightShape> by_shape_;  // by (n, k)
};

}  // namespace hdpsim
