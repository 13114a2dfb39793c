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

// Outputs of the products that per-operation recompute saves, and their sums over devices. A compiled layer keeps none
// that backward does not read: those of its last product.
std::vector<KeptTensor> saved_products(const LayerOperations& layer) {
  const bool is_compiled = layer.recipe.layers == LayerKernels::compiled;
  std::vector<KeptTensor> list;
  const auto last = std::find_if(layer.list.rbegin(), layer.list.rend(), [](const LayerOperation& operation) {
    return operation.kind == OperationKind::product;
  });
  for (const LayerOperation& operation : layer.list) {
    if (operation.kind != OperationKind::product || (is_compiled && &operation == &*last)) continue;
    const bool is_summed = operation.weights.front().columns.is_cut;
    for (std::size_t i = 0; i < operation.weights.size(); ++i) {
      const WeightShape& weight = operation.weights[i];
      const bool has_own = i == 0 || layer.recipe.is_pytorch();
      if (weight.parameters() == 0 || operation.again.at(has_own ? i : 0)) continue;
      KeptTensor output{weight.output, layer.element_bytes * weight.rows.all(), 0, weight.rows.is_cut};
      output.of_mlp = operation.part == DensePart::mlp;
      list.push_back(output);
    }
    if (!is_summed) continue;
    KeptTensor sum{"sum over devices", layer.element_bytes * operation.weights.front().rows.all(), 0,
                   layer.recipe.sequence_parallel};
    sum.of_sum = true;
    sum.of_mlp = operation.part == DensePart::mlp;
    list.push_back(sum);
  }
  return list;
}

// Under per-operation recompute.
std::vector<KeptTensor> saved_outputs(const LayerOperations& layer) {
  std::vector<KeptTensor> list;
  for (const KeptOperand& operand : layer.kept) {
    const bool is_attention = operand.again == Recompute::selective && layer.recipe.flash_attention;
    if (operand.in_full || (is_attention && !operand.tensor.of_trade)) list.push_back(operand.tensor);
  }
  const std::vector<KeptTensor> products = saved_products(layer);
  list.insert(list.end(), products.begin(), products.end());
  return list;
}

// Where an expert group computes copies, its device with most of them has its own part of them alone. Devices that cut
// experts have all of each other's copies, and a part of their columns.
KeptTensor held(KeptTensor tensor, const ExpertUse& use) {
  if (!tensor.of_experts || use.ep == 1) {
    tensor.of_experts = false;
    return tensor;
  }
  const double gathered = tensor.cut ? 1 : static_cast<double>(use.etp);
  tensor.bytes_per_token = std::llround(use.hottest * gathered * static_cast<double>(tensor.bytes_per_token));
  tensor.cut = false;
  return tensor;
}

}  // namespace

std::vector<KeptTensor> kept_tensors(const Transformer& model, const Recipe& recipe, const ExpertUse& experts) {
  HDPSIM_CHECK(!model.moe || !recipe.autocast(), "experts of {} under autocast", model.name);
  const LayerOperations operations = layer_operations(model, recipe);
  if (recipe.recompute == Recompute::per_operation) return saved_outputs(operations);
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
  for (const KeptOperand& operand : operations.kept) {
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
    if (tensor.of_sum && load.tp == 1) continue;
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
