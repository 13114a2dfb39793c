#include "sim/model/mixing.h"

#include <algorithm>

#include "sim/model/shares.h"

namespace hdpsim {
namespace {

void add_square(std::vector<AttentionBlock>& blocks, std::int64_t side, std::int64_t count) {
  if (side > 0 && count > 0) blocks.push_back({side, side, Mask::causal, count});
}

std::vector<AttentionBlock> band(std::int64_t window, std::int64_t tokens) {
  std::vector<AttentionBlock> blocks;
  add_square(blocks, std::min(window, tokens), 1);
  const std::int64_t behind = std::max<std::int64_t>(0, tokens - window);
  if (behind >= window) blocks.push_back({window, window, Mask::full, behind / window});
  if (behind % window > 0) blocks.push_back({behind % window, window, Mask::full, 1});
  return blocks;
}

// Every query behind the first ones has `keys` chosen keys of its own.
std::vector<AttentionBlock> blocks_of_choice(std::int64_t keys, std::int64_t tokens) {
  std::vector<AttentionBlock> blocks;
  add_square(blocks, std::min(keys, tokens), 1);
  if (tokens > keys) blocks.push_back({tokens - keys, keys, Mask::full, 1});
  return blocks;
}

}  // namespace

std::int64_t causal_area(std::int64_t tokens) {
  return tokens * (tokens + 1) / 2;
}

std::int64_t attention_reach(const Layer& layer) {
  return std::max(layer.window, layer.attention_chunk);
}

std::int64_t most_keys(const Layer& layer) {
  return layer.indexer ? layer.indexer->keys : attention_reach(layer);
}

double attention_area(const Layer& layer, std::int64_t tokens) {
  if (layer.linear || layer.heads == 0) return 0;
  const std::int64_t keys = most_keys(layer);
  if (keys == 0 || tokens <= keys) return causal_pairs(tokens);
  if (layer.attention_chunk == 0) {
    return causal_pairs(keys) + static_cast<double>(tokens - keys) * static_cast<double>(keys);
  }
  const std::int64_t chunks = tokens / keys;
  return static_cast<double>(chunks) * causal_pairs(keys) + causal_pairs(tokens % keys);
}

std::vector<AttentionBlock> attention_blocks(const Layer& layer, std::int64_t tokens) {
  if (layer.linear || layer.heads == 0) return {};
  if (layer.indexer) return blocks_of_choice(layer.indexer->keys, tokens);
  if (layer.window > 0) return band(layer.window, tokens);
  const std::int64_t chunk = layer.attention_chunk > 0 ? layer.attention_chunk : std::max<std::int64_t>(1, tokens);
  std::vector<AttentionBlock> blocks;
  add_square(blocks, chunk, tokens / chunk);
  add_square(blocks, tokens % chunk, 1);
  return blocks;
}

Flops attention_flops(const Layer& layer, double area, Direction direction) {
  if (layer.linear) return {};
  const CoreHeads core = core_heads(layer);
  return attention_flops(layer.heads * (core.key_dim + core.value_dim), area, direction);
}

Flops indexer_flops(const Layer& layer, std::int64_t tokens, Direction direction) {
  if (!layer.indexer) return {};
  const Flops of_pair(2.0 * static_cast<double>(layer.indexer->heads * layer.indexer->head_dim));
  if (direction == Direction::forward) return of_pair * causal_pairs(tokens);
  return 3 * of_pair * attention_area(layer, tokens);
}

std::vector<Gemm> mixing_products(const LinearMixing& mixing, std::int64_t tokens, std::int64_t tp) {
  if (mixing.chunk <= 1) return {};
  const std::int64_t chunk = mixing.chunk;
  const std::int64_t rows = tokens * divided(mixing.heads, tp);
  const std::int64_t states = divided(rows, chunk);
  std::vector<Gemm> products = {{tokens * divided(mixing.key_heads, tp), chunk, mixing.key_dim},
                                {rows, mixing.value_dim, chunk},
                                {rows, mixing.value_dim, mixing.key_dim},
                                {states * mixing.key_dim, mixing.value_dim, chunk}};
  if (!mixing.delta_rule) return products;
  products.push_back({rows, chunk, mixing.key_dim});
  products.push_back({rows, chunk, divided(chunk, 3)});  // forward substitution: c^3 / 3 multiplications
  products.push_back({rows, mixing.key_dim, chunk});
  products.push_back({rows, mixing.value_dim, chunk});
  products.push_back({rows, mixing.value_dim, mixing.key_dim});
  return products;
}

std::vector<Gemm> products_again(const LinearMixing& mixing, std::int64_t tokens, std::int64_t tp) {
  if (!mixing.delta_rule || mixing.chunk <= 1) return {};
  const std::int64_t rows = tokens * divided(mixing.heads, tp);
  const std::int64_t states = divided(rows, mixing.chunk);
  return {{rows, mixing.key_dim, mixing.chunk},
          {rows, mixing.value_dim, mixing.chunk},
          {rows, mixing.value_dim, mixing.key_dim},
          {states * mixing.key_dim, mixing.value_dim, mixing.chunk}};
}

Bytes state_bytes(const LinearMixing& mixing, std::int64_t tp) {
  return Bytes(divided(mixing.heads, tp) * mixing.key_dim * mixing.value_dim * fp32_bytes);
}

}  // namespace hdpsim
