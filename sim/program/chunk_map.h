#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/layers.h"
#include "sim/model/memory.h"
#include "sim/model/transformer.h"
#include "sim/program/schedule.h"

namespace hdpsim {

/// The layers of a chunk. The first chunk also has the embedding, the last one the output head and the loss.
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
/// Divides `layers` over `chunks` as evenly as possible. The remaining layers go to the first chunks, one each, because
/// the last chunk also has the output head. Requires 1 <= chunks <= layers (checked).
[[nodiscard]] LayerRange layers_of_chunk(std::int64_t layers, std::int64_t chunks, std::int64_t chunk);

/// The layers of a chunk, by kind: see layer_runs().
[[nodiscard]] std::vector<LayerRun> runs_of_chunk(const Transformer& model, std::int64_t chunks, std::int64_t chunk);

/// A table of the stages and their chunks under a schedule.
class ChunkMap {
 public:
  /// O(chunks).
  explicit ChunkMap(const Schedule& schedule);

  [[nodiscard]] std::int64_t stages() const { return std::ssize(held_); }
  [[nodiscard]] std::int64_t chunks() const { return chunks_; }
  [[nodiscard]] std::int64_t copies() const { return std::ssize(stages_) / chunks_; }
  [[nodiscard]] std::int64_t stage_of(std::int64_t chunk, std::int64_t copy) const {
    return stages_[static_cast<std::size_t>(copy * chunks_ + chunk)];
  }
  /// The chunks whose parameters a stage holds, over all copies of the model, each once.
  [[nodiscard]] const std::vector<std::int64_t>& held(std::int64_t stage) const {
    return held_[static_cast<std::size_t>(stage)];
  }
  /// Whether the chunk is the first one that a micro-batch of this copy runs on the chunk's stage.
  [[nodiscard]] bool is_first(std::int64_t chunk, std::int64_t copy) const {
    return is_first_[static_cast<std::size_t>(copy * chunks_ + chunk)];
  }
  /// The other stage that holds the same chunks, under a schedule with two copies of the model.
  [[nodiscard]] std::int64_t twin(std::int64_t stage) const;
  [[nodiscard]] bool has_embedding(std::int64_t stage) const;
  [[nodiscard]] bool has_head(std::int64_t stage) const;

 private:
  std::int64_t chunks_;
  std::vector<std::int64_t> stages_;  ///< By copy and chunk.
  std::vector<bool> is_first_;        ///< By copy and chunk.
  std::vector<std::vector<std::int64_t>> held_;
};

/// The part of the model on a device of a stage: `shape` with the layers, the embedding and the head of its chunks.
[[nodiscard]] DeviceShape stage_shape(const Transformer& model, DeviceShape shape, const ChunkMap& chunks,
                                      std::int64_t stage);

}  // namespace hdpsim
