#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "kernels/ring/rank_attention.h"
#include "kernels/ring/scratch.h"
#include "kernels/spec/attention.h"
#include "kernels/spec/backend.h"

namespace hdpsim::kernels {

/// The place of a chunk: rows [begin, begin + rows) of a document of `all` rows.
struct ChunkPlace {
  std::size_t document = 0;
  std::int64_t begin = 0;
  std::int64_t rows = 0;
  std::int64_t all = 0;
};

/// Causal attention of the chunks of a document, one after the other, to the keys and values of the chunk and of those
/// before it (ChunkFlow, Yuan et al. 2025, arXiv 2503.02356). Chunks go forward in order and backward in the reverse
/// order, the last one first: the gradients of a chunk's keys are complete when it goes backward itself. A chunk may go
/// forward again in between.
///
/// Memory of the backend from a document's first forward pass to its last backward pass, per layer: all w elements and
/// all w fp32, with w = kv_width(). Later documents reuse it.
class ChunkKeys {
 public:
  /// `backend` must outlive this.
  explicit ChunkKeys(Backend& backend) : backend_(backend), delta_(backend) {}

  /// From now on this chunk.
  void join(const ChunkPlace& place, const AttentionHeads& heads) {
    place_ = place;
    heads_ = heads;
  }
  /// Attention in a layer, with the chunk's tensors.
  void attend(std::int64_t layer, const RingForward& op);
  void attend(std::int64_t layer, const RingBackward& op);

 private:
  struct Kept {
    explicit Kept(Backend& backend) : kv(backend), d_kv(backend) {}
    Scratch kv;    ///< Elements [all, kv_width()]
    Scratch d_kv;  ///< fp32 [all, kv_width()]
  };
  using Key = std::pair<std::size_t, std::int64_t>;  ///< document, layer

  [[nodiscard]] std::size_t count(std::int64_t rows) const { return static_cast<std::size_t>(rows * kv_width(heads_)); }
  /// The chunk's rows against all rows up to its end.
  [[nodiscard]] std::vector<AttentionBlock> blocks(const Reach& reach) const {
    return limited({{.query_begin = 0,
                     .queries = place_.rows,
                     .key_begin = 0,
                     .keys = place_.begin + place_.rows,
                     .mask = Mask::causal}},
                   reach);
  }
  Kept& kept(std::int64_t layer);

  Backend& backend_;
  AttentionHeads heads_;
  ChunkPlace place_;
  std::map<Key, Kept> kept_;
  std::vector<Kept> spare_;
  Scratch delta_;  ///< fp32 [heads, rows]
};

}  // namespace hdpsim::kernels
