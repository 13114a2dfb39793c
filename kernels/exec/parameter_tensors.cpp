#include "kernels/exec/parameter_tensors.h"

#include <algorithm>
#include <cmath>

#include "kernels/exec/impl/hash.h"
#include "kernels/exec/impl/layer_kinds.h"
#include "kernels/exec/requirements.h"
#include "sim/base/check.h"

namespace hdpsim::kernels::exec {
namespace {

constexpr double deviation = 0.02;

/// A device's part of `count` things.
struct Range {
  std::int64_t begin;
  std::int64_t count;
};

Range part_of(std::int64_t count, const TensorShard& shard) {
  const std::int64_t each = (count + shard.devices - 1) / shard.devices;
  const std::int64_t begin = std::min(count, each * shard.index);
  return {begin, std::min(each, count - begin)};
}

template <class T>
const T& nth(const std::vector<std::pair<DensePart, T>>& all, DensePart part, std::size_t i) {
  for (const auto& [own, each] : all) {
    if (own == part && i-- == 0) return each;
  }
  HDPSIM_CHECK(false, "part {} of a layer has fewer parameters", static_cast<int>(part));
}

// Whether the stage has a layer, by layer.
std::vector<bool> layers_of(const PipelineStage& stage, std::int64_t layers) {
  std::vector<bool> has(static_cast<std::size_t>(layers));
  for (const std::int64_t chunk : stage.own) {
    const LayerRange range = stage.deal.layers(layers, chunk);
    std::fill_n(has.begin() + range.first, range.count, true);
  }
  return has;
}

}  // namespace

const Linear& LayerTensors::product(DensePart part, std::size_t i) const {
  return nth(products_, part, i);
}

const Tensor& LayerTensors::norm(DensePart part, std::size_t i) const {
  return nth(norms_, part, i);
}

PipelineStage stage_at(int index, const ChunkMap& chunks) {
  return {index, static_cast<int>(chunks.stages()), chunks.deal(), chunks.held(index)};
}

Transformer shard_of(const Transformer& model, const TensorShard& shard) {
  Transformer part = model;
  const auto cut = [&](Layer& layer) {
    layer.heads /= shard.devices;
    layer.kv_heads /= shard.devices;
    layer.ffn_hidden /= shard.devices;
  };
  cut(part);
  for (Layer& layer : part.others) cut(layer);
  part.vocabulary = part_of(model.vocabulary, shard).count;
  return part;
}

std::int64_t first_of_vocabulary(const Transformer& model, const TensorShard& shard) {
  return part_of(model.vocabulary, shard).begin;
}

ParameterLayout::ParameterLayout(const Transformer& model, const TensorShard& shard, const PipelineStage& stage)
    : shard_(shard) {
  require_executable(model, shard.devices);
  residual_share_ = 1 / std::sqrt(2 * static_cast<double>(model.layers));
  const Matrix table{model.vocabulary, model.hidden, Cut::rows, Start::usual};
  const std::int64_t table_in_whole = whole_count_;
  embedding_ = add(table, stage.has_embedding());
  const LayerKinds kinds(model, {});
  const std::vector<bool> held = layers_of(stage, model.layers);
  for (std::size_t layer = 0; layer < held.size(); ++layer) {
    layers_.push_back(add_layer(kinds.of(static_cast<std::int64_t>(layer)), held[layer]));
  }
  final_norm_ = add({1, model.hidden, Cut::none, Start::ones}, stage.has_head());
  if (!model.tied_embeddings) {
    head_ = add(table, stage.has_head());
  } else if (stage.has_head()) {
    head_ = stage.has_embedding() ? embedding_ : place(table, table_in_whole);
  }
}

// Shared experts have their place behind the others.
LayerTensors ParameterLayout::add_layer(const Transformer& kind, bool here) {
  LayerOperations operations = layer_operations(kind, {});
  std::stable_partition(operations.list.begin(), operations.list.end(),
                        [](const LayerOperation& each) { return each.part != DensePart::shared_experts; });
  LayerTensors layer;
  for (const LayerOperation& each : operations.list) {
    if (each.kind == OperationKind::product) layer.products_.emplace_back(each.part, add_product(each, here));
    if (each.vectors > 0) layer.norms_.emplace_back(each.part, add({1, each.vectors, Cut::none, Start::ones}, here));
  }
  return layer;
}

// What reads a tensor that is cut over the devices is the last product of a branch.
Linear ParameterLayout::add_product(const LayerOperation& product, bool here) {
  const auto on_device = [&](const Width& width) {
    return width.is_cut ? part_of(width.all(), shard_).count : width.all();
  };
  Linear linear;
  for (const WeightShape& weight : product.weights) {
    if (weight.parameters() == 0) continue;
    const Start start = weight.columns.is_cut ? Start::residual : Start::usual;
    const Cut cut = weight.rows.is_cut ? Cut::rows : weight.columns.is_cut ? Cut::columns : Cut::none;
    const std::int64_t blocks = shard_.devices == 1 ? 1 : weight.blocks;
    linear.out += on_device(weight.rows);
    linear.in = on_device(weight.columns);
    for (std::int64_t block = 0; block < blocks; ++block) {
      const Tensor added = add({weight.rows.all() / blocks * weight.count, weight.columns.all(), cut, start}, here);
      if (linear.weight.count == 0) linear.weight.begin = added.begin;
      linear.weight.count += added.count;
    }
  }
  return linear;
}

Tensor ParameterLayout::add(const Matrix& matrix, bool here) {
  const std::int64_t in_whole = whole_count_;
  whole_count_ += matrix.rows * matrix.width;
  return here ? place(matrix, in_whole) : Tensor{};
}

// Rows that are consecutive in the whole model too are one long row.
Tensor ParameterLayout::place(const Matrix& matrix, std::int64_t in_whole) {
  const auto& [rows, width, cut, start] = matrix;
  Piece piece{count_, 1, rows * width, in_whole, rows * width, start};
  if (cut == Cut::rows) {
    const Range own = part_of(rows, shard_);
    piece.width = own.count * width;
    piece.in_whole += own.begin * width;
  } else if (cut == Cut::columns && shard_.devices > 1) {
    const Range own = part_of(width, shard_);
    piece = {count_, rows, own.count, in_whole + own.begin, width, start};
  }
  count_ = piece.end();
  pieces_.push_back(piece);
  return {piece.begin, count_ - piece.begin};
}

std::size_t ParameterLayout::piece_of(std::int64_t index) const {
  const auto ends_behind = [](std::int64_t i, const Piece& piece) { return i < piece.end(); };
  return static_cast<std::size_t>(std::upper_bound(pieces_.begin(), pieces_.end(), index, ends_behind) -
                                  pieces_.begin());
}

std::vector<ParameterLayout::Stretch> ParameterLayout::stretches(std::int64_t begin, std::int64_t count) const {
  std::vector<Stretch> found;
  const std::int64_t end = std::min(begin + count, count_);
  for (std::size_t p = piece_of(begin); begin < end;) {
    const Piece& piece = pieces_[p];
    const std::int64_t row = (begin - piece.begin) / piece.width;
    const std::int64_t column = (begin - piece.begin) % piece.width;
    const std::int64_t length = std::min(piece.width - column, end - begin);
    found.push_back({begin, length, piece.in_whole + row * piece.whole_width + column});
    begin += length;
    while (p < pieces_.size() && pieces_[p].end() <= begin) ++p;
  }
  return found;
}

void ParameterLayout::initial_values(std::uint64_t seed, std::int64_t begin, std::span<float> values) const {
  const double half_width = deviation * std::sqrt(3.0);  // half width of the uniform distribution with this deviation
  std::fill(values.begin(), values.end(), 0.0F);
  for (const Stretch& stretch : stretches(begin, static_cast<std::int64_t>(values.size()))) {
    const Start start = pieces_[piece_of(stretch.begin)].start;
    const double width = start == Start::residual ? half_width * residual_share_ : half_width;
    for (std::int64_t i = 0; i < stretch.count; ++i) {
      const auto place = static_cast<std::uint64_t>(stretch.in_whole + i);
      values[static_cast<std::size_t>(stretch.begin - begin + i)] =
          start == Start::ones ? 1 : static_cast<float>(width * (2 * unit_hash(seed, place) - 1));
    }
  }
}

}  // namespace hdpsim::kernels::exec
