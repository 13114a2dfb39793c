#include "kernels/exec/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/exec/impl/hash.h"
#include "kernels/spec/error.h"
#include "sim/model/mixing.h"

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

void require_executable(const Transformer& model, int devices) {
  const std::vector<std::string> problems = execution_problems(model, devices);
  if (problems.empty()) return;
  throw UnsupportedInput(fmt::format("model '{}' cannot be executed: {}", model.name, fmt::join(problems, ", ")));
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

PipelineStage stage_at(int index, const ChunkMap& chunks) {
  return {index, static_cast<int>(chunks.stages()), chunks.deal(), chunks.held(index)};
}

std::vector<std::string> execution_problems(const Transformer& model, int devices) {
  std::vector<std::string> problems;
  if (!model.others.empty()) problems.emplace_back("its layers are of several kinds");
  if (model.moe) problems.emplace_back("it has experts");
  if (model.latent) problems.emplace_back("its keys and values are made through latents");
  if (model.linear) problems.emplace_back("its tokens are mixed in linear time");
  if (attention_reach(model) > 0 || model.sinks) problems.emplace_back("its tokens do not see all tokens before them");
  if (model.gated_output || model.output_bias) problems.emplace_back("its attention's output has a gate or a bias");
  if (model.predictions > 1) problems.emplace_back("it predicts several tokens");
  if (model.norms != 2) problems.push_back(fmt::format("its layers have {} norms", model.norms));
  if (model.qkv_biases) problems.emplace_back("its queries, keys and values have biases");
  if (model.qk_norm) problems.emplace_back("its queries and keys have norms");
  if (model.biases) problems.emplace_back("it has biases");
  if (model.learned_positions > 0) problems.emplace_back("its positions are learned");
  if (!model.gated_mlp) problems.emplace_back("its MLP has no gate");
  if (model.head_dim != 64 && model.head_dim != 128) {
    problems.push_back(fmt::format("its heads have dimension {}, not 64 or 128", model.head_dim));
  }
  const std::pair<const char*, std::int64_t> cut[] = {
      {"heads", model.heads}, {"key-value heads", model.kv_heads}, {"columns of its MLP", model.ffn_hidden}};
  for (const auto& [what, count] : cut) {
    if (count % devices == 0) continue;
    problems.push_back(fmt::format("its {} {} do not divide among {} devices", count, what, devices));
  }
  return problems;
}

Transformer shard_of(const Transformer& model, const TensorShard& shard) {
  Transformer part = model;
  part.heads /= shard.devices;
  part.kv_heads /= shard.devices;
  part.ffn_hidden /= shard.devices;
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
  for (const bool here : layers_of(stage, model.layers)) layers_.push_back(add_layer(model, here));
  final_norm_ = add({1, model.hidden, Cut::none, Start::ones}, stage.has_head());
  if (!model.tied_embeddings) {
    head_ = add(table, stage.has_head());
  } else if (stage.has_head()) {
    head_ = stage.has_embedding() ? embedding_ : place(table, table_in_whole);
  }
}

LayerTensors ParameterLayout::add_layer(const Transformer& model, bool here) {
  const std::int64_t hidden = model.hidden;
  const std::int64_t query_width = model.heads * model.head_dim;
  const std::int64_t kv_width = model.kv_heads * model.head_dim;
  // Adds two matrices one after the other, of which each device has rows.
  const auto add_pair = [&](std::int64_t rows) {
    const Matrix one{rows, hidden, Cut::rows, Start::usual};
    const Tensor first = add(one, here);
    return Tensor{first.begin, first.count + add(one, here).count};
  };
  LayerTensors layer;
  layer.attention_norm = add({1, hidden, Cut::none, Start::ones}, here);
  layer.query = add({query_width, hidden, Cut::rows, Start::usual}, here);
  layer.key_value = add_pair(kv_width);
  layer.output = add({hidden, query_width, Cut::columns, Start::residual}, here);
  layer.mlp_norm = add({1, hidden, Cut::none, Start::ones}, here);
  layer.gate_up = add_pair(model.ffn_hidden);
  layer.down = add({hidden, model.ffn_hidden, Cut::columns, Start::residual}, here);
  return layer;
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
