#include "sim/model/weight_matrices.h"

#include "sim/model/layer_operations.h"

namespace hdpsim {
namespace {

// Equal parts of rows or columns, whole heads or not: a study's tp divides heads anyway.
std::int64_t equal_part(const Width& width, std::int64_t devices) {
  return width.is_cut ? divided(width.all(), devices) : width.all();
}

}  // namespace

std::vector<WeightMatrix> weight_matrices(const Transformer& layer, std::int64_t tp, std::int64_t ep) {
  std::vector<WeightMatrix> list;
  for (const LayerOperation& operation : layer_operations(layer, {}).list) {
    const bool is_whole = operation.is_of_experts() && ep > 1;
    const std::int64_t cut = is_whole ? 1 : tp;
    for (const WeightShape& weight : operation.weights) {
      if (weight.parameters() == 0) continue;
      list.push_back({equal_part(weight.rows, cut), equal_part(weight.columns, cut),
                      is_whole ? weight.count / ep : weight.count, is_whole});
    }
  }
  return list;
}

}  // namespace hdpsim
