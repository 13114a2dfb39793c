#include "kernels/exec/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/exec/impl/hash.h"
#include "kernels/exec/impl/layer_kinds.h"
#include "kernels/exec/impl/layer_mixing.h"
#include "kernels/spec/error.h"
#include "sim/model/layers.h"
#include "sim/model/shares.h"

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

bool has_kernels(const AttentionHeads& heads) {
  const bool alike = heads.value_width() == heads.dim;
  return alike ? heads.dim == 64 || heads.dim == 128 || heads.dim == 256
               : heads.dim == 192 && heads.value_width() == 128;
}

// Of layers of one kind.
std::vector<std::string> problems_of(const Layer& layer, int devices) {
  std::vector<std::string> problems;
  if (layer.linear && !is_lightning(*layer.linear)) {
    problems.emplace_back("its tokens are mixed in linear time, and not by lightning attention");
  }
  if (layer.heads == 0 && !layer.linear) problems.emplace_back("it has layers without attention");
  if (!has_mlp(layer)) problems.emplace_back("it has layers without an MLP");
  if (layer.gated_output || layer.output_bias) problems.emplace_back("its attention's output has a gate or a bias");
  if (layer.sinks) problems.emplace_back("its attention has sinks");
  if (layer.joins) problems.emplace_back("it has layers that predict further tokens");
  if (layer.norms != 2) problems.push_back(fmt::format("its layers have {} norms", layer.norms));
  if (layer.qkv_biases) problems.emplace_back("its queries, keys and values have biases");
  if (layer.indexer) problems.emplace_back("an indexer chooses the keys that its tokens see");
  if (layer.qk_norm) problems.emplace_back("its queries and keys have norms");
  if (layer.biases) problems.emplace_back("it has biases");
  if (!layer.gated_mlp) problems.emplace_back("its MLP has no gate");
  if (layer.moe && layer.moe->latent > 0) problems.emplace_back("its experts work in a latent");
  if (layer.moe && layer.moe->groups > 1) problems.emplace_back("its router chooses groups of experts first");
  if (layer.moe && layer.moe->shared_gate) problems.emplace_back("its shared experts have a gate");
  if (layer.moe && layer.moe->biases) problems.emplace_back("its experts have biases");
  if (layer.moe && devices > 1) problems.emplace_back("its experts are executed with tp 1 alone");
  if (layer.latent && devices > 1) problems.emplace_back("its latents are executed with tp 1 alone");
  if (layer.linear && devices > 1) problems.emplace_back("its linear mixing is executed with tp 1 alone");
  if (const AttentionHeads heads = heads_of(layer); heads.heads > 0 && !has_kernels(heads)) {
    problems.push_back(fmt::format("its heads have dimension {}, and values of {}: not 64, 128, 256, or 192 and 128",
                                   heads.dim, heads.value_width()));
  }
  const std::pair<const char*, std::int64_t> cut[] = {
      {"heads", layer.heads}, {"key-value heads", layer.kv_heads}, {"columns of its MLP", layer.ffn_hidden}};
  for (const auto& [what, count] : cut) {
    if (count % devices == 0) continue;
    problems.push_back(fmt::format("its {} {} do not divide among {} devices", count, what, devices));
  }
  return problems;
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
  const auto add = [&](std::string problem) {
    if (std::find(problems.begin(), problems.end(), problem) == problems.end()) problems.push_back(std::move(problem));
  };
  for (const Transformer& kind : of_each_kind(model)) {
    for (std::string& problem : problems_of(kind, devices)) add(std::move(problem));
  }
  if (model.predictions > 1) add("it predicts several tokens");
  if (model.learned_positions > 0) add("its positions are learned");
  return problems;
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

LayerTensors ParameterLayout::add_layer(const Transformer& model, bool here) {
  const std::int64_t hidden = model.hidden;
  const std::int64_t inner = inner_width(model);
  LayerTensors layer;
  layer.attention_norm = add({1, hidden, Cut::none, Start::ones}, here);
  if (model.linear) {
    add_mixing(model, here, layer);
  } else if (model.latent) {
    add_latents(model, here, layer);
  } else {
    add_inputs(model, here, layer);
  }
  layer.output = add({hidden, output_width(model), Cut::columns, Start::residual}, here);
  layer.mlp_norm = add({1, hidden, Cut::none, Start::ones}, here);
  if (model.moe) add_experts(model, here, layer);
  if (inner == 0) return layer;
  layer.gate_up = add_pair({inner, hidden, Cut::rows, Start::usual}, here);
  layer.down = add({hidden, inner, Cut::columns, Start::residual}, here);
  return layer;
}

void ParameterLayout::add_inputs(const Transformer& model, bool here, LayerTensors& layer) {
  layer.query = add({query_width(model), model.hidden, Cut::rows, Start::usual}, here);
  layer.key_value = add_pair({key_width(model), model.hidden, Cut::rows, Start::usual}, here);
}

void ParameterLayout::add_latents(const Transformer& model, bool here, LayerTensors& layer) {
  const auto& [query_rank, kv_rank, rotated] = *model.latent;
  const auto matrix = [&](std::int64_t rows, std::int64_t width) {
    return add({rows, width, Cut::none, Start::usual}, here);
  };
  const auto norm = [&](std::int64_t width) { return add({1, width, Cut::none, Start::ones}, here); };
  if (query_rank > 0) {
    layer.query_down = matrix(query_rank, model.hidden);
    layer.query_norm = norm(query_rank);
  }
  layer.query = matrix(query_width(model), query_rank > 0 ? query_rank : model.hidden);
  layer.kv_down = matrix(kv_rank, model.hidden);
  layer.key_rotated = matrix(rotated, model.hidden);
  layer.kv_norm = norm(kv_rank);
  layer.key_up = matrix(model.heads * (model.head_dim - rotated), kv_rank);
  layer.value_up = matrix(output_width(model), kv_rank);
}

void ParameterLayout::add_mixing(const Transformer& model, bool here, LayerTensors& layer) {
  const std::int64_t width = output_width(model);
  layer.mixing_qkv = add({3 * width, model.hidden, Cut::none, Start::usual}, here);
  layer.mixing_gate = add({width, model.hidden, Cut::none, Start::usual}, here);
  layer.mixing_norm = add({1, width, Cut::none, Start::ones}, here);
}

void ParameterLayout::add_experts(const Transformer& model, bool here, LayerTensors& layer) {
  const MixtureOfExperts& moe = *model.moe;
  const std::int64_t inner = moe.experts * moe.expert_hidden;
  layer.router = add({moe.experts, model.hidden, Cut::none, Start::usual}, here);
  layer.expert_gate_up = add({2 * inner, model.hidden, Cut::none, Start::usual}, here);
  layer.expert_down = add({moe.experts * model.hidden, moe.expert_hidden, Cut::none, Start::residual}, here);
}

// Two matrices one after the other, of which each device has rows.
Tensor ParameterLayout::add_pair(const Matrix& one, bool here) {
  const Tensor first = add(one, here);
  return {first.begin, first.count + add(one, here).count};
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
