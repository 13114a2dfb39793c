#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "sim/model/layer_operations.h"

namespace hdpsim {

// Products or kinds of kernels of consecutive work, for which memory is taken at once.
constexpr std::size_t usual_products = 8;

/// Adds up the work of operations in one direction, by the rules of their kinds. In fp8 a product reads its input, and
/// in backward the gradient of its output, by rows and another by columns: a kernel casts elements to both, or what
/// came in fp8 to the other one.
class OperationWork {
 public:
  /// `layer` and `rows` must outlive it.
  OperationWork(const LayerOperations& layer, const DeviceRows& rows, Direction direction, Gradients gradients);

  void add(DensePart part);
  [[nodiscard]] LinearPart take() { return std::move(work_); }

 private:
  void add_work(DensePart part);
  void add(const LayerOperation& operation);
  void add_activation(DensePart part);
  void add_inner();
  void add_again(DensePart part);
  void product(const LayerOperation& of);
  void products_of(const LayerOperation& of, std::int64_t k);
  void multiply(const Gemm& with_sum, const LayerOperation& of);
  void dequantize(const LayerOperation& of, std::int64_t elements);
  void cast_input(const LayerOperation& of, std::int64_t elements, std::int64_t tensors);
  void cast_in_product(const LayerOperation& of, std::int64_t n, std::int64_t k);
  [[nodiscard]] std::int64_t idle_experts() const;
  [[nodiscard]] std::int64_t products_in(const LayerOperation& of) const;
  void added_gradients(const LayerOperation& of, std::int64_t k);
  void weight_gradient(std::int64_t elements, std::int64_t weights);
  void cast_weight(std::int64_t elements);
  void copy_shards(std::int64_t elements, bool is_trained = true);
  void norm(const LayerOperation& of);
  void activation(const LayerOperation& of);
  void unfused_activation(const LayerOperation& of);
  void fork(const LayerOperation& of);
  void residual(const LayerOperation& of);
  void mixing(const LayerOperation& of);
  void lookup(const LayerOperation& of);
  void loss(const LayerOperation& of);
  void sum_chunks(const LayerOperation& of);
  [[nodiscard]] std::int64_t chunks_of(const LayerOperation& loss) const;
  [[nodiscard]] std::int64_t head_inputs() const;  ///< Columns of what the head reads.
  void pass(const LayerOperation& of);

  /// Elements of the tensor that a memory-bound kernel passes over.
  [[nodiscard]] std::int64_t elements(const LayerOperation& of) const;
  [[nodiscard]] std::int64_t rows(const LayerOperation& of) const;
  /// Bytes of an element of the residual stream.
  [[nodiscard]] std::int64_t stream() const { return recipe_.parameter_bytes(element_bytes()); }
  [[nodiscard]] std::int64_t element_bytes() const { return operations_.element_bytes; }
  [[nodiscard]] bool is_forward() const { return work_.direction == Direction::forward; }
  [[nodiscard]] bool computes(Gradients which) const {
    return work_.gradients == Gradients::all || work_.gradients == which;
  }
  /// A kernel that reads and writes so many bytes in all.
  void kernel(std::int64_t bytes, MemoryKernel kind = MemoryKernel::other, std::int64_t kernels = 1);
  void kernel(const Passes& passes, std::int64_t count, MemoryKernel kind) {
    kernel(passes.bytes(count, element_bytes()), kind, passes.kernels);
  }
  [[nodiscard]] const Passes& passes_of(const BothPasses& both) const {
    return is_forward() ? both.forward : both.backward;
  }
  /// Products with one weight each, or with all of them side by side.
  [[nodiscard]] bool splits(const LayerOperation& of) const {
    return recipe_.is_pytorch() && of.weights[1].parameters() > 0;
  }
  /// A cast between fp32 and an element, in either direction.
  void cast_fp32(std::int64_t count) { kernel(count * (fp32_bytes + element_bytes())); }
  /// Backward multiplies a gradient of so many bytes an element by the mask.
  void drop_gradient(std::int64_t count, std::int64_t bytes) { kernel(count * (2 * bytes + mask_bytes)); }
  /// Reads gradients of so many weights, and reads and writes their sums over micro-batches, of `sum` bytes an element;
  /// 0: no kernel does.
  void add_up(std::int64_t count, std::int64_t sum, std::int64_t weights = 1);

  const LayerOperations& operations_;
  const Recipe& recipe_;
  const DeviceRows& rows_;
  std::int64_t copies_;
  /// The gradients with which memory-bound kernels of the operation run.
  Gradients with_kernels_ = Gradients::inputs;
  bool is_of_backward_ = false;  ///< Forward work of a part that only recomputation has.
  bool is_again_ = false;        ///< Per-operation recompute: products whose output is kept are left out.
  LinearPart work_;
};

}  // namespace hdpsim
