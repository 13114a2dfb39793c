#include "kernels/exec/parameters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/exec/impl/hash.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels::exec {
namespace {

constexpr double deviation = 0.02;

void require_executable(const Transformer& model) {
  std::vector<std::string> reasons;
  if (model.moe) reasons.emplace_back("it has experts");
  if (model.biases) reasons.emplace_back("it has biases");
  if (model.learned_positions > 0) reasons.emplace_back("its positions are learned");
  if (!model.gated_mlp) reasons.emplace_back("its MLP has no gate");
  if (model.head_dim != 64 && model.head_dim != 128) {
    reasons.push_back(fmt::format("its heads have dimension {}, not 64 or 128", model.head_dim));
  }
  if (reasons.empty()) return;
  throw UnsupportedInput(fmt::format("model '{}' cannot be executed: {}", model.name, fmt::join(reasons, ", ")));
}

}  // namespace

ParameterLayout::ParameterLayout(const Transformer& model) {
  require_executable(model);
  residual_share_ = 1 / std::sqrt(2 * static_cast<double>(model.layers));
  const std::int64_t hidden = model.hidden;
  const std::int64_t query_width = model.heads * model.head_dim;
  embedding_ = add(model.vocabulary * hidden, Start::usual);
  for (std::int64_t i = 0; i < model.layers; ++i) {
    LayerTensors& layer = layers_.emplace_back();
    layer.attention_norm = add(hidden, Start::ones);
    layer.query = add(query_width * hidden, Start::usual);
    layer.key_value = add(2 * model.kv_heads * model.head_dim * hidden, Start::usual);
    layer.output = add(hidden * query_width, Start::residual);
    layer.mlp_norm = add(hidden, Start::ones);
    layer.gate_up = add(2 * model.ffn_hidden * hidden, Start::usual);
    layer.down = add(hidden * model.ffn_hidden, Start::residual);
  }
  final_norm_ = add(hidden, Start::ones);
  head_ = model.tied_embeddings ? embedding_ : add(model.vocabulary * hidden, Start::usual);
}

Tensor ParameterLayout::add(std::int64_t count, Start start) {
  const Tensor tensor{count_, count};
  count_ += count;
  stretches_.push_back({count_, start});
  return tensor;
}

void ParameterLayout::initial_values(std::uint64_t seed, std::int64_t begin, std::span<float> values) const {
  const double half_width = deviation * std::sqrt(3.0);  // of the uniform distribution with this deviation
  auto stretch = std::upper_bound(stretches_.begin(), stretches_.end(), begin,
                                  [](std::int64_t index, const Stretch& s) { return index < s.end; });
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t index = begin + static_cast<std::int64_t>(i);
    while (stretch != stretches_.end() && index >= stretch->end) ++stretch;
    if (stretch == stretches_.end() || stretch->start == Start::ones) {
      values[i] = stretch == stretches_.end() ? 0 : 1;
      continue;
    }
    const double width = stretch->start == Start::residual ? half_width * residual_share_ : half_width;
    values[i] = static_cast<float>(width * (2 * unit_hash(seed, static_cast<std::uint64_t>(index)) - 1));
  }
}

}  // namespace hdpsim::kernels::exec
