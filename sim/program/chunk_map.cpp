#include "sim/program/chunk_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/division.h"
#include "sim/model/parameters.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// What a chunk of the first and of the last stage gets, if these are stated, and what the others get.
struct LayerDeal::Shares {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t each = 0;
  std::int64_t left_over = 0;  ///< So many of the others, the first ones, have one layer more.
};

LayerDeal::LayerDeal(std::int64_t stages, std::int64_t chunks, const LayerSplit& split)
    : stages_(stages), chunks_(chunks), split_(split) {
  if (split.layout.empty()) return;
  begins_.push_back(0);
  for (const std::int64_t layers : split.layout) begins_.push_back(begins_.back() + layers);
}

LayerDeal::Shares LayerDeal::shares(std::int64_t all) const {
  const std::int64_t held = chunks_ / stages_;
  const std::int64_t others = chunks_ - (split_.first_stage > 0 ? held : 0) - (split_.last_stage > 0 ? held : 0);
  const std::int64_t dealt =
      all + (split_.counts_embedding ? 1 : 0) + (split_.counts_loss ? 1 : 0) - split_.first_stage - split_.last_stage;
  Shares shares{.first = split_.first_stage / held, .last = split_.last_stage / held};
  if (others <= 0 || dealt <= 0) return shares;
  shares.each = dealt / others;
  shares.left_over = dealt % others;
  return shares;
}

// The first and the last stage are stated only where ChunkMap::in_turn().
std::int64_t LayerDeal::begin(std::int64_t chunk, const Shares& shares) const {
  const std::int64_t of_first = split_.first_stage > 0 ? divided(chunk, stages_) : 0;
  const std::int64_t of_last = split_.last_stage > 0 ? chunk / stages_ : 0;
  const std::int64_t others = chunk - of_first - of_last;
  const std::int64_t counted =
      (split_.counts_embedding && chunk > 0 ? 1 : 0) + (split_.counts_loss && chunk == chunks_ ? 1 : 0);
  return of_first * shares.first + of_last * shares.last + others * shares.each + std::min(others, shares.left_over) -
         counted;
}

LayerRange LayerDeal::layers(std::int64_t all, std::int64_t chunk) const {
  if (!begins_.empty()) {
    const auto at = static_cast<std::size_t>(chunk);
    HDPSIM_CHECK(at + 1 < begins_.size(), "chunk {} of a layout of {}", chunk, begins_.size() - 1);
    return {begins_[at], begins_[at + 1] - begins_[at]};
  }
  const Shares shared = shares(all);
  const std::int64_t first = begin(chunk, shared);
  const LayerRange range{first, begin(chunk + 1, shared) - first};
  HDPSIM_CHECK(0 <= chunk && chunk < chunks_ && range.count >= 0, "chunk {} of {} has no part of {} layers", chunk,
               chunks_, all);
  return range;
}

std::int64_t LayerDeal::typical(std::int64_t all) const {
  if (!begins_.empty()) return std::max<std::int64_t>(1, *std::max_element(split_.layout.begin(), split_.layout.end()));
  const Shares shared = shares(all);
  return shared.each > 0 ? shared.each : std::max<std::int64_t>(1, std::max(shared.first, shared.last));
}

std::string LayerDeal::problem(std::int64_t all) const {
  if (!begins_.empty()) {
    if (std::ssize(split_.layout) != chunks_) {
      return fmt::format("the layout has {} chunks, the pipeline {}", split_.layout.size(), chunks_);
    }
    return begins_.back() == all ? "" : fmt::format("the layout has {} of {} layers", begins_.back(), all);
  }
  const std::int64_t held = chunks_ / stages_;
  for (const auto& [stated, name] : {std::pair(split_.first_stage, "first"), std::pair(split_.last_stage, "last")}) {
    if (stated % held != 0) {
      return fmt::format("the {} layers of the {} stage do not divide into its {} chunks", stated, name, held);
    }
  }
  const Shares shared = shares(all);
  if (begin(chunks_, shared) != all) {
    return fmt::format("the stages get {} of {} layers", begin(chunks_, shared), all);
  }
  // The fewest layers have the ends, where something else may count as a layer, or the last chunk between them.
  for (const std::int64_t chunk : {std::int64_t{0}, chunks_ - 2, chunks_ - 1}) {
    if (chunk < 0) continue;
    const std::int64_t counted =
        (split_.counts_embedding && chunk == 0 ? 1 : 0) + (split_.counts_loss && chunk + 1 == chunks_ ? 1 : 0);
    const std::int64_t count = begin(chunk + 1, shared) - begin(chunk, shared);
    if (count >= 0 && count + counted > 0) continue;
    return fmt::format("chunk {} of {} gets no layer", chunk, chunks_);
  }
  return "";
}

ChunkMap::ChunkMap(const Schedule& schedule, const LayerSplit& split)
    : deal_(schedule.stages(), schedule.chunks(), split), held_(static_cast<std::size_t>(schedule.stages())) {
  for (std::int64_t copy = 0; copy < schedule.copies(); ++copy) {
    std::vector<bool> was_there(held_.size());
    for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
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

bool ChunkMap::in_turn() const {
  if (copies() > 1) return false;
  for (std::int64_t chunk = 0; chunk < chunks(); ++chunk) {
    if (stage_of(chunk, 0) != chunk % stages()) return false;
  }
  return true;
}

std::vector<LayerRun> ChunkMap::runs(const Transformer& model, std::int64_t chunk) const {
  const LayerRange range = deal_.layers(model.layers, chunk);
  return layer_runs(model, range.first, range.count);
}

ChunkMap::ChunkMap(const PipelineOptions& options, std::int64_t stages)
    : ChunkMap(*make_schedule(options, stages), options.split) {}

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
  return std::find(chunks.begin(), chunks.end(), this->chunks() - 1) != chunks.end();
}

double resident_share_of_stage(const ChunkMap& chunks, std::int64_t layers, std::int64_t stage, double offload) {
  double resident = 0;
  std::int64_t all = 0;
  for (const std::int64_t chunk : chunks.held(stage)) {
    const std::int64_t count = chunks.deal().layers(layers, chunk).count;
    resident += resident_share(offload, count) * static_cast<double>(count);
    all += count;
  }
  return all > 0 ? resident / static_cast<double>(all) : 1;
}

DeviceShape stage_shape(const Transformer& model, DeviceShape shape, const ChunkMap& chunks, std::int64_t stage) {
  shape.pp = chunks.stages();
  shape.layers.clear();
  for (const std::int64_t chunk : chunks.held(stage)) {
    for (const LayerRun& run : chunks.runs(model, chunk)) add_last(shape.layers, run);
  }
  shape.embedding = chunks.has_embedding(stage);
  shape.head = chunks.has_head(stage);
  return shape;
}

}  // namespace hdpsim
