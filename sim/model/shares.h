#pragma once

#include <cstdint>

#include "sim/base/division.h"
#include "sim/model/transformer.h"

namespace hdpsim {

inline constexpr std::int64_t fp32_bytes = 4;  ///< Of a number in fp32.
inline constexpr std::int64_t mask_bytes = 1;  ///< Of an element's place in the mask of a dropout.

/// Columns of a tensor, or rows or columns of a weight: `count` units of `unit` columns. Where they are cut, each
/// device of a tensor-parallel group has an equal number of units; otherwise each has all of them.
struct Width {
  std::int64_t count = 0;
  std::int64_t unit = 1;
  bool is_cut = false;

  [[nodiscard]] std::int64_t all() const { return count * unit; }
  [[nodiscard]] std::int64_t on(std::int64_t tp) const { return (is_cut ? divided(count, tp) : count) * unit; }
};

/// Width of a head's values.
[[nodiscard]] inline std::int64_t value_dim(const Layer& layer) {
  return layer.value_dim > 0 ? layer.value_dim : layer.head_dim;
}

/// Columns of the queries, keys or values of all heads, and rows of the output projection.
[[nodiscard]] inline std::int64_t query_width(const Layer& layer) {
  return layer.heads * layer.head_dim;
}
[[nodiscard]] inline std::int64_t key_width(const Layer& layer) {
  return layer.kv_heads * layer.head_dim;
}
[[nodiscard]] inline std::int64_t value_width(const Layer& layer) {
  return layer.kv_heads * value_dim(layer);
}
[[nodiscard]] inline std::int64_t output_width(const Layer& layer) {
  return layer.linear ? layer.linear->heads * layer.linear->value_dim : layer.heads * value_dim(layer);
}

/// Heads of keys, and widths of a head, as the attention kernel has them, repeated ones included: where an indexer
/// chooses keys, all heads read the latent of a token, and its rotated columns.
struct CoreHeads {
  std::int64_t kv_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
};
[[nodiscard]] inline CoreHeads core_heads(const Layer& layer) {
  const std::int64_t kv_heads = layer.repeats_keys ? layer.heads : layer.kv_heads;
  if (!layer.indexer) return {kv_heads, layer.head_dim, value_dim(layer)};
  return {1, layer.latent->kv_rank + layer.latent->rotated, layer.latent->kv_rank};
}

/// Whether the layer scores keys, and takes no choice of another layer.
[[nodiscard]] inline bool scores_keys(const Layer& layer) {
  return layer.indexer && layer.indexer->heads > 0;
}

/// Columns of the keys and values of a token, as ranks exchange them; where an indexer chooses keys, those of the
/// latent and of the indexer's key, which all devices have whole.
[[nodiscard]] inline Width exchanged_keys(const Layer& layer) {
  const CoreHeads core = core_heads(layer);
  if (!layer.indexer) return {.count = core.kv_heads, .unit = core.key_dim + core.value_dim, .is_cut = true};
  return {.count = core.key_dim + (scores_keys(layer) ? layer.indexer->head_dim : 0)};
}

/// Bytes of a query's choice of keys: 32 bits for the place of each.
[[nodiscard]] inline std::int64_t choice_bytes(const KeyIndexer& indexer) {
  return 4 * indexer.keys;
}

/// Parameters of a norm of the residual stream.
[[nodiscard]] inline std::int64_t norm_parameters(const Transformer& model) {
  return (model.biases ? 2 : 1) * model.hidden;
}

/// Columns of what an expert reads and writes, and of the copies of tokens that travel to it.
[[nodiscard]] inline std::int64_t copy_width(const Transformer& model) {
  return model.moe && model.moe->latent > 0 ? model.moe->latent : model.hidden;
}

}  // namespace hdpsim
