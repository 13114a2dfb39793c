#include "sim/cost/impl/unfused_attention.h"

#include <algorithm>
#include <array>

namespace hdpsim {
namespace {

std::int64_t kernels_between(const Attention& op) {
  return op.dropout ? 2 : 1;
}

std::int64_t bytes_per_score(const Attention& op) {
  const bool forward = op.direction == Direction::forward;
  const std::int64_t softmax = forward ? 2 + 2 : 2 + 2 + 2;
  const std::int64_t dropout = forward ? 2 + 2 + 1 : 2 + 1 + 2;
  return op.dropout ? softmax + dropout : softmax;
}

// The products of all heads and equal blocks as one product: it is cut into the same tiles. The short side, the head,
// lies along the short side of a tile, as libraries choose.
struct Products {
  Gemm scores;   // queries x keys, summed over the head; also the gradient of P
  Gemm queries;  // head x queries, summed over the keys: the output, the gradient of Q
  Gemm keys;     // head x keys, summed over the queries: the gradients of K and V
};

Products products_of(const AttentionBlock& block, const Attention& op) {
  const std::int64_t batch = op.heads * block.count;
  return {{batch * block.queries, block.keys, op.head_dim},
          {op.head_dim, batch * block.queries, block.keys},
          {op.head_dim, batch * block.keys, block.queries}};
}

}  // namespace

Estimate UnfusedAttentionCostModel::attention(const Attention& op) const {
  Estimate sum{Duration{}, Evidence::measured};
  const auto add = [&](const Estimate& part, std::int64_t times) {
    sum.time += times * part.time;
    sum.evidence = std::max(sum.evidence, part.evidence);
  };
  const bool forward = op.direction == Direction::forward;
  for (const AttentionBlock& block : op.blocks) {
    const Products products = products_of(block, op);
    const Bytes traffic = Bytes(bytes_per_score(op) * op.heads * block.count) * block.queries * block.keys;
    add(model_->gemm(products.scores), 1);
    add(model_->gemm(products.queries), 1);
    if (!forward) add(model_->gemm(products.keys), 2);
    add(model_->memory_bound({traffic, kernels_between(op)}), 1);
  }
  return sum;
}

std::int64_t UnfusedAttentionCostModel::kernels(const Attention& op) const {
  const std::int64_t products = op.direction == Direction::forward ? 2 : 4;
  return std::ssize(op.blocks) * (products + kernels_between(op));
}

}  // namespace hdpsim
