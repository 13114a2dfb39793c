#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/transformer.h"

namespace hdpsim {

/// Weight matrices of one shape on one device.
struct WeightMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t count = 1;
  bool whole_experts = false;  ///< Of experts that are whole on this device.

  [[nodiscard]] std::int64_t parameters() const { return rows * columns * count; }
  friend bool operator==(const WeightMatrix&, const WeightMatrix&) = default;
};

/// The weight matrices of a layer of the model's kind 0 on one of `tp` devices: all parameters but biases and the
/// vectors of norms and of state spaces. A device has rows of the products that make queries, keys, values and the
/// MLP's inner tensor, and columns of those that follow. Queries, keys and values are a matrix each; the gate is one
/// matrix with the up projection, as Megatron-Core has them. What makes latents, the indexer and the router are whole
/// on every device. Experts are cut over tp, or whole where `ep` devices, more than 1, divide them.
[[nodiscard]] std::vector<WeightMatrix> weight_matrices(const Transformer& layer, std::int64_t tp, std::int64_t ep);

}  // namespace hdpsim
