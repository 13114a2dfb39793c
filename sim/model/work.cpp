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
  std::int64_t all = 0;
  for (const Gemm& product : gemms) all += product.count;
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

Bytes kv_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp) {
  return Bytes(tokens * exchanged_keys(model).on(tp) * model.element_bytes);
}

Bytes hidden_bytes(const Transformer& model, std::int64_t tokens) {
  return Bytes(tokens * model.hidden * model.element_bytes);
}

}  // namespace hdpsim
