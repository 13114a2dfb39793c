#include "sim/model/kept_tensors.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/base/check.h"
#include "sim/model/layer_operations.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

bool is_kept(const KeptOperand& operand, Recompute recompute) {
  if (operand.instead != Recompute::none && !recompute.intersects(operand.instead)) return false;
  return recompute == Recompute::full ? operand.in_full : !recompute.intersects(operand.again);
}

// Where an expert group computes copies, its device with most of them has its own part of them alone.
KeptTensor held(KeptTensor tensor, const ExpertUse& use) {
  if (!tensor.of_experts || use.ep == 1) {
    tensor.of_experts = false;
    return tensor;
  }
  tensor.bytes_per_token = std::llround(use.hottest * static_cast<double>(tensor.bytes_per_token));
  tensor.cut = false;
  return tensor;
}

}  // namespace

std::vector<KeptTensor> kept_tensors(const Transformer& model, const Recipe& recipe, const ExpertUse& experts) {
  HDPSIM_CHECK(!model.moe || !recipe.autocast(), "experts of {} under autocast", model.name);
  std::vector<KeptTensor> list;
  const auto add = [&](const KeptOperand& operand) {
    const bool is_there = std::any_of(list.begin(), list.end(), [&](const KeptTensor& tensor) {
      return tensor.bytes == 0 && tensor.name == operand.tensor.name;
    });
    if (is_there && operand.behind_trade.empty()) return;
    list.push_back(held(operand.tensor, experts));
    if (!is_there) return;
    list.back().name = operand.behind_trade;
    list.back().of_trade = true;
  };
  for (const KeptOperand& operand : layer_operations(model, recipe).kept) {
    if (is_kept(operand, recipe.recompute)) add(operand);
  }
  return list;
}

Bytes kept_bytes(const std::vector<KeptTensor>& tensors, const KeptLoad& load) {
  HDPSIM_CHECK(load.tp > 0, "a tensor-parallel group of {}", load.tp);
  const std::int64_t of_group = load.expert_tokens.value_or(divided(load.tokens, load.tp));
  Bytes cut;
  Bytes whole;
  for (const KeptTensor& tensor : tensors) {
    if (tensor.of_trade && !load.trades_heads) continue;
    const std::int64_t each = tensor.of_experts ? of_group : load.tokens;
    Bytes& sum = tensor.cut ? cut : whole;
    sum += each * Bytes(tensor.bytes_per_token) + Bytes(tensor.bytes);
    if (tensor.bytes_per_pair > 0) sum += Bytes(tensor.bytes_per_pair).scaled(load.pairs);
  }
  return Bytes(divided(cut.count(), load.tp)) + whole;
}

Bytes token_wise_bytes(const std::vector<KeptTensor>& tensors, const KeptLoad& load, double share) {
  std::vector<KeptTensor> whole;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(whole), [](const auto& t) { return t.goes_whole; });
  const Bytes of_whole = kept_bytes(whole, load);
  return of_whole + (kept_bytes(tensors, load) - of_whole).scaled(share);
}

Bytes activation_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp, Recompute recompute,
                       bool sequence_parallel) {
  return kept_bytes(kept_tensors(model, {.recompute = recompute, .sequence_parallel = sequence_parallel}),
                    {.tokens = tokens, .tp = tp});
}

}  // namespace hdpsim
