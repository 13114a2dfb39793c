#include <algorithm>
#include <array>
#include <cmath>

#include "calib/measure/impl/grid.h"
#include "sim/base/random.h"
#include "sim/model/layers.h"

namespace hdpsim::calib {
namespace {

constexpr std::int64_t shortest = 128;
constexpr std::int64_t longest = 131'072;

struct Heads {
  std::int64_t heads;
  std::int64_t kv_heads;
};

/// A fast device needs many heads to be filled; on a slow one, where heads run one after the other, two are enough and
/// leave time for longer sequences.
constexpr double slow_device_flops = 5e12;
constexpr Heads few_heads = {2, 2};
constexpr Heads many_heads = {32, 8};

Heads usual_heads(const std::optional<Transformer>& model, const DeviceSpeed& speed) {
  if (speed.usual_flops < slow_device_flops) return few_heads;
  const Transformer kind = model ? of_attention(*model) : Transformer{};
  return kind.heads > 0 ? Heads{kind.heads, kind.kv_heads} : many_heads;
}

std::vector<Heads> other_heads(Heads usual) {
  std::vector<Heads> all;
  for (const Heads heads : {Heads{usual.heads * 2, usual.kv_heads},
                            Heads{std::max<std::int64_t>(1, usual.heads / 2), 1}, Heads{usual.heads, usual.heads}}) {
    const bool same = heads.heads == usual.heads && heads.kv_heads == usual.kv_heads;
    if (!same && heads.heads % heads.kv_heads == 0) all.push_back(heads);
  }
  return all;
}

Attention launch(Heads heads, std::int64_t dim, Direction direction, std::vector<AttentionBlock> blocks) {
  return {.blocks = std::move(blocks),
          .heads = heads.heads,
          .kv_heads = heads.kv_heads,
          .head_dim = dim,
          .direction = direction};
}

/// Lengths of documents that fill `tokens`: lognormal with deviation 1, as web text and code are, the last one cut.
std::vector<std::int64_t> document_lengths(std::int64_t tokens, std::int64_t mean, RandomStream& random) {
  constexpr double deviation = 1;
  const double mu = std::log(static_cast<double>(mean)) - deviation * deviation / 2;
  std::vector<std::int64_t> lengths;
  while (tokens > 0) {
    const double drawn = std::exp(mu + deviation * random.normal());
    const auto length = std::clamp(static_cast<std::int64_t>(drawn), std::int64_t{1}, tokens);
    lengths.push_back(length);
    tokens -= length;
  }
  return lengths;
}

std::vector<AttentionBlock> causal_blocks(const std::vector<std::int64_t>& lengths) {
  std::vector<AttentionBlock> blocks;
  blocks.reserve(lengths.size());
  for (const std::int64_t length : lengths) blocks.push_back({length, length, Mask::causal, 1});
  return blocks;
}

/// A zigzag ring step: all queries of a document against the first half of another rank's keys.
std::vector<AttentionBlock> ring_blocks(const std::vector<std::int64_t>& lengths) {
  std::vector<AttentionBlock> blocks;
  blocks.reserve(lengths.size());
  for (const std::int64_t length : lengths) blocks.push_back({length, (length + 1) / 2, Mask::full, 1});
  return blocks;
}

class Grid {
 public:
  Grid(Heads usual, std::uint64_t seed) : usual_(usual), seed_(seed) {}

  [[nodiscard]] std::vector<Candidate> build() {
    for (const std::int64_t dim : {128, 64}) {
      for (const Direction direction : {Direction::forward, Direction::backward}) {
        dim_ = dim;
        direction_ = direction;
        add_squares();
        add_rectangles();
        add_packs();
        add_heads();
      }
    }
    return std::move(candidates_);
  }

 private:
  void add(int level, std::vector<AttentionBlock> blocks) { add(level, usual_, std::move(blocks)); }
  void add(int level, Heads heads, std::vector<AttentionBlock> blocks) {
    candidates_.emplace_back(launch(heads, dim_, direction_, std::move(blocks)), level);
  }

  void add_squares() {
    for (std::int64_t length = shortest; length <= longest; length *= 2) {
      for (const Mask mask : {Mask::causal, Mask::full}) {
        add(length == 128 || length == 512 || length == 2048 || length == 8192 || length >= 32'768 ? 0 : 1,
            {{length, length, mask, 1}});
        add(1, {{length * 3 / 2, length * 3 / 2, mask, 1}});
        add(2, {{length, length, mask, 4}});
        add(3, {{length + 77, length + 77, mask, 1}});  // a multiple of no tile
      }
    }
  }

  /// Keys of the first half of an earlier rank, queries of the second half for a later one (zigzag), and pieces of
  /// unequal length.
  void add_rectangles() {
    for (std::int64_t length = shortest; length <= longest; length *= 2) {
      add(1, {{length, length / 2, Mask::full, 1}});
      add(1, {{length / 2, length, Mask::full, 1}});
      add(2, {{length, 2048, Mask::full, 1}});
      add(2, {{2048, length, Mask::full, 1}});
      add(2, {{length, 8 * length, Mask::full, 1}});
      add(2, {{8 * length, length, Mask::full, 1}});
      add(3, {{length, length / 2, Mask::full, 4}});
    }
  }

  /// A few packs of every mean length; the short means make many short documents.
  void add_packs() {
    for (const std::int64_t tokens : {2048, 8192, 32'768}) {
      for (const std::int64_t mean : {64, 256, 1024, 4096}) {
        if (mean * 4 > tokens) continue;
        RandomStream random(seed_, "documents", static_cast<std::uint64_t>(tokens * 8192 + mean));
        const auto lengths = document_lengths(tokens, mean, random);
        const auto more_lengths = document_lengths(tokens, mean, random);
        add(1, causal_blocks(lengths));
        add(1, ring_blocks(lengths));
        add(2, causal_blocks(more_lengths));
        add(2, ring_blocks(more_lengths));
      }
    }
  }

  void add_heads() {
    for (const Heads heads : other_heads(usual_)) {
      for (const std::int64_t length : {512, 2048, 8192}) {
        add(2, heads, {{length, length, Mask::causal, 1}});
        add(2, heads, {{length, length / 2, Mask::full, 1}});
      }
    }
  }

  Heads usual_;
  std::uint64_t seed_;
  std::int64_t dim_ = 0;
  Direction direction_ = Direction::forward;
  std::vector<Candidate> candidates_;
};

}  // namespace

std::vector<Candidate> attention_grid(const std::optional<Transformer>& model, const DeviceSpeed& speed,
                                      std::uint64_t seed) {
  return Grid(usual_heads(model, speed), seed).build();
}

}  // namespace hdpsim::calib
