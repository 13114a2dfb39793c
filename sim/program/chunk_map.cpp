#include "sim/program/chunk_map.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/model/parameters.h"

namespace hdpsim {

LayerRange layers_of_chunk(std::int64_t layers, std::int64_t chunks, std::int64_t chunk) {
  HDPSIM_CHECK(1 <= chunks && chunks <= layers, "{} layers in {} chunks", layers, chunks);
  const std::int64_t each = layers / chunks;
  const std::int64_t left_over = layers % chunks;
  return {chunk * each + std::min(chunk, left_over), each + (chunk < left_over ? 1 : 0)};
}

std::vector<LayerRun> runs_of_chunk(const Transformer& model, std::int64_t chunks, std::int64_t chunk) {
  const LayerRange range = layers_of_chunk(model.layers, chunks, chunk);
  return layer_runs(model, range.first, range.count);
}

ChunkMap::ChunkMap(const Schedule& schedule)
    : chunks_(schedule.chunks()), held_(static_cast<std::size_t>(schedule.stages())) {
  for (std::int64_t copy = 0; copy < schedule.copies(); ++copy) {
    std::vector<bool> was_there(held_.size());
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
      const std::int64_t stage = schedule.stage_of(chunk, copy);
      const auto at = static_cast<std::size_t>(stage);
      HDPSIM_CHECK(0 <= stage && at < held_.size(), "chunk {} on stage {} of {}", chunk, stage, held_.size());
      stages_.push_back(stage);
      is_first_.push_back(!was_there[at]);
      was_there[at] = true;
      held_[at].push_back(chunk);
    }
  }
}

std::int64_t ChunkMap::twin(std::int64_t stage) const {
  const std::int64_t chunk = held(stage).front();
  const std::int64_t other = stage_of(chunk, stage_of(chunk, 0) == stage ? 1 : 0);
  HDPSIM_CHECK(other != stage &&
                   std::is_permutation(held(other).begin(), held(other).end(), held(stage).begin(), held(stage).end()),
               "stages {} and {} hold other chunks", stage, other);
  return other;
}

bool ChunkMap::has_embedding(std::int64_t stage) const {
  const auto& chunks = held(stage);
  return std::find(chunks.begin(), chunks.end(), 0) != chunks.end();
}

bool ChunkMap::has_head(std::int64_t stage) const {
  const auto& chunks = held(stage);
  return std::find(chunks.begin(), chunks.end(), chunks_ - 1) != chunks.end();
}

DeviceShape stage_shape(const Transformer& model, DeviceShape shape, const ChunkMap& chunks, std::int64_t stage) {
  shape.pp = chunks.stages();
  shape.layers.clear();
  for (const std::int64_t chunk : chunks.held(stage)) {
    for (const LayerRun& run : runs_of_chunk(model, chunks.chunks(), chunk)) add_last(shape.layers, run);
  }
  shape.embedding = chunks.has_embedding(stage);
  shape.head = chunks.has_head(stage);
  return shape;
}

}  // namespace hdpsim
