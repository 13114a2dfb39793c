#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/layer_operations.h"

namespace hdpsim {

/// The rows of a device's operations, on one of `tp` devices that cut a layer.
struct DeviceRows {
  std::int64_t tp = 1;
  std::int64_t all = 0;
  std::int64_t stream = 0;
  std::vector<std::int64_t> copies = {};  ///< By expert of the device.
  bool fp8_sent = false;                  ///< Copies, and gradients of results, come from other devices in fp8.
  bool sorted = false;                    ///< Copies come in another order than that of the experts.
};
/// Those of `tokens` tokens of an HDP rank.
[[nodiscard]] DeviceRows device_rows(std::int64_t tokens, std::int64_t tp, const Recipe& recipe);

/// Adds up the work of operations in one direction, by the rules of their kinds. In fp8 a product reads its input, and
/// in backward the gradient of its output, by rows and another by columns: a kernel casts elements to both, or what
/// came in fp8 to the other one.
class OperationWork {
 public:
  OperationWork(const Transformer& layer, const Recipe& recipe, DeviceRows rows, Direction direction);

  /// The operations of `list` that belong to a part, in the order of the direction; of the MLP also those up to its
  /// last product, or its activation alone (DensePart::mlp_inner, mlp_activation), which are forward (checked).
  void add(const std::vector<LayerOperation>& list, DensePart part);
  void add(const LayerOperation& operation);
  [[nodiscard]] LinearPart take() { return std::move(work_); }

 private:
  void add_first_of_mlp(const std::vector<LayerOperation>& list, bool activation_alone);
  void product(const LayerOperation& of);
  void cast_input(const LayerOperation& of, std::int64_t elements);
  void weight_gradient(std::int64_t elements);
  void cast_weight(std::int64_t elements);
  void norm(const LayerOperation& of);
  void activation(const LayerOperation& of);
  void fork(const LayerOperation& of);
  void residual(const LayerOperation& of);
  void mixing(const LayerOperation& of);
  void lookup(const LayerOperation& of);
  void loss(const LayerOperation& of);
  void pass(const LayerOperation& of);

  /// Elements of the tensor that a memory-bound kernel passes over.
  [[nodiscard]] std::int64_t elements(const LayerOperation& of) const;
  [[nodiscard]] std::int64_t rows(const LayerOperation& of) const;
  /// Bytes of an element of the residual stream.
  [[nodiscard]] std::int64_t stream() const { return recipe_.parameter_bytes(element_bytes()); }
  [[nodiscard]] std::int64_t element_bytes() const { return layer_.element_bytes; }
  [[nodiscard]] bool is_forward() const { return work_.direction == Direction::forward; }
  /// A kernel that reads and writes so many bytes in all.
  void kernel(std::int64_t bytes, MemoryKernel kind = MemoryKernel::other, std::int64_t kernels = 1);
  /// A cast between fp32 and an element, in either direction.
  void cast_fp32(std::int64_t count) { kernel(count * (fp32_bytes + element_bytes())); }
  /// Backward multiplies a gradient of so many bytes an element by the mask.
  void drop_gradient(std::int64_t count, std::int64_t bytes) { kernel(count * (2 * bytes + mask_bytes)); }
  /// Reads a weight's gradient, and reads and writes its sum over micro-batches, of `sum` bytes an element; 0: no
  /// kernel does.
  void add_up(std::int64_t count, std::int64_t sum);

  const Transformer& layer_;
  const Recipe& recipe_;
  DeviceRows rows_;
  std::int64_t copies_;
  LinearPart work_;
};

}  // namespace hdpsim
