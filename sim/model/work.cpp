#include "sim/model/work.h"

#include <algorithm>
#include <iterator>

#include "sim/model/layer_operations.h"
#include "sim/model/shares.h"

namespace hdpsim {

void LinearPart::add(const MemoryBound& kernels) {
  const auto same = std::find_if(memory_bound.begin(), memory_bound.end(),
                                 [&](const MemoryBound& those) { return those.kind == kernels.kind; });
  if (same == memory_bound.end()) return memory_bound.push_back(kernels);
  same->traffic += kernels.traffic;
  same->kernels += kernels.kernels;
}

Bytes LinearPart::traffic() const {
  Bytes all;
  for (const MemoryBound& kernels : memory_bound) all += kernels.traffic;
  return all;
}

std::int64_t LinearPart::launches() const {
  std::int64_t all = std::ssize(gemms);
  for (const MemoryBound& kernels : memory_bound) all += kernels.kernels;
  return all;
}

LinearPart dense_work(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                      const std::vector<DensePart>& parts, Direction direction, const Recipe& recipe) {
  const DeviceRows rows = device_rows(tokens, tp, recipe);
  const bool is_at_end = std::any_of(parts.begin(), parts.end(), [](DensePart part) {
    return part == DensePart::embedding || part == DensePart::final_norm || part == DensePart::head;
  });
  return work_of(is_at_end ? end_operations(model, recipe) : layer_operations(model, recipe), rows, parts, direction);
}

LinearPart before_attention(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction,
                            const Recipe& recipe) {
  using enum DensePart;
  const bool is_forward = direction == Direction::forward;
  const auto parts = is_forward ? std::vector{attention_norm, qkv} : std::vector{qkv, attention_norm};
  return dense_work(model, tokens, tp, parts, direction, recipe);
}

LinearPart after_attention(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction,
                           const Recipe& recipe) {
  using enum DensePart;
  std::vector<DensePart> parts{mlp, mlp_norm, attention_output};
  if (direction == Direction::forward) parts = {attention_output, attention_residual, mlp_norm, mlp, mlp_residual};
  if (model.moe) std::erase(parts, mlp);
  return dense_work(model, tokens, tp, parts, direction, recipe);
}

LinearPart embedding(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction,
                     const Recipe& recipe) {
  return dense_work(model, tokens, tp, {DensePart::embedding}, direction, recipe);
}

LinearPart output_head(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction,
                       const Recipe& recipe) {
  using enum DensePart;
  if (direction == Direction::forward) return dense_work(model, tokens, tp, {final_norm, head}, direction, recipe);
  return dense_work(model, tokens, tp, {head, final_norm}, direction, recipe);
}

namespace {

// Takes every second product of a backward part: Stretch::product() adds the gradient of a product's input, then that
// of its weight. Linear mixing has no weights.
LinearPart half_of(const LinearPart& backward, Gradients gradients) {
  const bool mixes = backward.parts == std::vector{DensePart::mixing};
  const bool scatters = backward.parts == std::vector{DensePart::embedding};
  const std::size_t first = gradients == Gradients::inputs ? 0 : 1;
  LinearPart half{.gemms = {},
                  .memory_bound = {},
                  .parts = backward.parts,
                  .direction = backward.direction,
                  .gradients = gradients};
  if ((gradients == Gradients::weights) == scatters) half.memory_bound = backward.memory_bound;
  if (mixes && gradients == Gradients::inputs) half.gemms = backward.gemms;
  if (mixes) return half;
  for (std::size_t i = first; i < backward.gemms.size(); i += 2) half.gemms.push_back(backward.gemms[i]);
  return half;
}

}  // namespace

LinearPart input_gradients(const LinearPart& backward) {
  return half_of(backward, Gradients::inputs);
}

LinearPart weight_gradients(const LinearPart& backward) {
  return half_of(backward, Gradients::weights);
}

std::optional<std::size_t> last_product(const LinearPart& backward, Gradients gradients) {
  const std::size_t products = backward.gemms.size();
  if (products == 0) return std::nullopt;
  if (backward.gradients == gradients) return products - 1;
  if (backward.gradients != Gradients::all) return std::nullopt;
  return gradients == Gradients::inputs ? products - 2 : products - 1;
}

Bytes kv_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp) {
  if (model.indexer) {
    const std::int64_t of_indexer = scores_keys(model) ? model.indexer->head_dim : 0;
    return Bytes(tokens * (core_heads(model).key_dim + of_indexer) * model.element_bytes);
  }
  const std::int64_t heads = divided(model.kv_heads, tp);
  return Bytes(tokens * heads * (model.head_dim + value_dim(model)) * model.element_bytes);
}

Bytes hidden_bytes(const Transformer& model, std::int64_t tokens) {
  return Bytes(tokens * model.hidden * model.element_bytes);
}

}  // namespace hdpsim
