#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/layers.h"
#include "sim/model/memory.h"
#include "sim/model/transformer.h"
#include "sim/program/schedule.h"

namespace hdpsim {

/// The layers of a chunk. The first chunk also has the embedding, the last one the output head and the loss. They may
/// have no layer where these count as one.
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
/// How many layers each chunk of a pipeline gets: see LayerSplit. What is left over goes to the first chunks because
/// the last one also has the output head.
class LayerDeal {
 public:
  LayerDeal() = default;
  LayerDeal(std::int64_t stages, std::int64_t chunks, const LayerSplit& split = {});

  [[nodiscard]] std::int64_t chunks() const { return chunks_; }
  /// The layers of a chunk of a model that has `all`; problem() must have none. O(1).
  [[nodiscard]] LayerRange layers(std::int64_t all, std::int64_t chunk) const;
  /// The layers of most chunks: without what is left over, and without what the split gives to the first and the last
  /// stage.
  [[nodiscard]] std::int64_t typical(std::int64_t all) const;
  /// Why `all` layers cannot be dealt so; empty if they can: "chunk 0 gets no layer". O(1).
  [[nodiscard]] std::string problem(std::int64_t all) const;

 private:
  struct Shares;
  [[nodiscard]] Shares shares(std::int64_t all) const;
  [[nodiscard]] std::int64_t begin(std::int64_t chunk, const Shares& shares) const;

  std::int64_t stages_ = 1;
  std::int64_t chunks_ = 1;
  LayerSplit split_;
  std::vector<std::int64_t> begins_;  ///< Under a layout: the first layer of each chunk, and their number.
};

/// A table of the stages and their chunks under a schedule.
class ChunkMap {
 public:
  /// O(chunks).
  ChunkMap(const Schedule& schedule, const LayerSplit& split);
  /// That of make_schedule(options, stages), with the options' split.
  ChunkMap(const PipelineOptions& options, std::int64_t stages);

  [[nodiscard]] std::int64_t stages() const { return std::ssize(held_); }
  [[nodiscard]] std::int64_t chunks() const { return deal_.chunks(); }
  [[nodiscard]] std::int64_t copies() const { return std::ssize(stages_) / chunks(); }
  [[nodiscard]] std::int64_t stage_of(std::int64_t chunk, std::int64_t copy) const {
    return stages_[static_cast<std::size_t>(copy * chunks() + chunk)];
  }
  /// The chunks whose parameters a stage holds, over all copies of the model, each once.
  [[nodiscard]] const std::vector<std::int64_t>& held(std::int64_t stage) const {
    return held_[static_cast<std::size_t>(stage)];
  }
  /// Whether the chunk is the first one that a micro-batch of this copy runs on the chunk's stage.
  [[nodiscard]] bool is_first(std::int64_t chunk, std::int64_t copy) const {
    return is_first_[static_cast<std::size_t>(copy * chunks() + chunk)];
  }
  /// The other stage that holds the same chunks, under a schedule with two copies of the model.
  [[nodiscard]] std::int64_t twin(std::int64_t stage) const;
  [[nodiscard]] bool has_embedding(std::int64_t stage) const;
  [[nodiscard]] bool has_head(std::int64_t stage) const;

  /// Whether chunk c is on stage c mod stages alone, so that one stage is the first and another one the last.
  /// O(chunks).
  [[nodiscard]] bool in_turn() const;
  [[nodiscard]] const LayerDeal& deal() const { return deal_; }
  /// The layers of a chunk, by kind: see LayerDeal::layers() and layer_runs().
  [[nodiscard]] std::vector<LayerRun> runs(const Transformer& model, std::int64_t chunk) const;

 private:
  LayerDeal deal_;
  std::vector<std::int64_t> stages_;  ///< By copy and chunk.
  std::vector<bool> is_first_;        ///< By copy and chunk.
  std::vector<std::vector<std::int64_t>> held_;
};

/// Share of the activations of a stage's layers that stays on the device under an offload ratio, in a model of so many
/// layers: resident_share() of each of its chunks, as each pass leaves two layers there. 1 of a stage without layers.
[[nodiscard]] double resident_share_of_stage(const ChunkMap& chunks, std::int64_t layers, std::int64_t stage,
                                             double offload);

/// The part of the model on a device of a stage: `shape` with the layers, the embedding and the head of its chunks.
[[nodiscard]] DeviceShape stage_shape(const Transformer& model, DeviceShape shape, const ChunkMap& chunks,
                                      std::int64_t stage);

}  // namespace hdpsim
