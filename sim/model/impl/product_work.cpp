#include <algorithm>

#include "sim/model/impl/operation_work.h"
#include "sim/model/product_format.h"

namespace hdpsim {

// The products of a layer, forward and backward, with the casts that they need and what becomes of weights' gradients.

void OperationWork::product(const LayerOperation& of) {
  std::int64_t n = 0;
  for (const WeightShape& weight : of.weights) n += weight.rows.on(rows_.tp);
  const std::int64_t k = of.weights.front().columns.on(rows_.tp);
  // A device's experts are one tensor of PyTorch, and a weight each of Transformer Engine.
  const std::int64_t weights = of.is_of_experts() ? std::ssize(rows_.copies) : 1;
  recipe_.casts_in_products() ? cast_in_product(of, n, k) : cast_input(of, rows(of) * (is_forward() ? k : n), weights);
  if (recipe_.autocast()) cast_weight(weights * n * k);
  if (recipe_.lora.dequantizes() && !of.is_adapter && of.part != DensePart::head) dequantize(of, n * k);
  if (!is_again_ && recipe_.copies_shards()) copy_shards(weights * n * k, of.is_trained);
  // The gradient of a bias is the sum of the output's gradient over all tokens, which is read once more for it. In fp8
  // the cast of that gradient adds it up (Transformer Engine, cast_transpose_dbias).
  if (!is_forward() && of.is_trained && !is_narrow(of.format) && of.sums_bias) kernel(rows(of) * n * element_bytes());
  products_of(of, k);
  if (is_forward()) return;
  added_gradients(of, k);
  if (of.is_trained) weight_gradient(weights * n * k, weights);
}

void OperationWork::products_of(const LayerOperation& of, std::int64_t k) {
  const auto multiply_by = [&](std::int64_t n, bool is_again) {
    if (n == 0 || (is_again_ && !is_again)) return;
    // Experts with rows have the mean of them: tiles of unequal products fill the same waves.
    const std::int64_t products = of.is_of_experts() ? std::ssize(rows_.copies) - idle_experts() : 1;
    multiply({divided(rows(of), products), n, k, of.format, of.sum_bytes, products}, of);
  };
  if (splits(of)) {
    for (std::size_t i = 0; i < of.weights.size(); ++i) multiply_by(of.weights[i].rows.on(rows_.tp), of.again[i]);
    return;
  }
  std::int64_t all = 0;
  for (const WeightShape& weight : of.weights) all += weight.rows.on(rows_.tp);
  multiply_by(all, of.again.front());
}

// Each product of one input has a gradient for it.
void OperationWork::added_gradients(const LayerOperation& of, std::int64_t k) {
  for (std::int64_t i = 1; i < products_in(of); ++i) {
    kernel(recipe_.elementwise().added_gradient, rows(of) * k, MemoryKernel::add);
  }
}

std::int64_t OperationWork::products_in(const LayerOperation& of) const {
  if (!splits(of)) return 1;
  return std::count_if(of.weights.begin(), of.weights.end(),
                       [](const WeightShape& weight) { return weight.parameters() > 0; });
}

std::int64_t OperationWork::idle_experts() const {
  return std::count(rows_.copies.begin(), rows_.copies.end(), 0);
}

// Backward has the product for the gradient of the input (m x n times n x k) and of the weight (k x m times m x n),
// which alone adds to a sum.
void OperationWork::multiply(const Gemm& with_sum, const LayerOperation& of) {
  const auto& [m, n, k, format, sum_bytes, count] = with_sum;
  std::vector<Gemm>& products = work_.gemms;
  if (m == 0) return;
  const auto add = [&](const Gemm& product) {
    products.push_back(product);
    work_.in_loops += product.count - 1;
    work_.narrow += is_narrow(product.format) ? 1 : 0;
  };
  if (is_forward()) return add({m, n, k, format, 0, count});
  if (computes(Gradients::inputs)) {
    work_.last_of_inputs = products.size();
    add({m, k, n, format, 0, count});
  }
  if (of.is_trained && computes(Gradients::weights)) {
    work_.last_of_weights = products.size();
    add({k, n, m, format, sum_bytes, count});
  }
}

// A kernel for each weight reads its few bits with their scales and writes elements.
void OperationWork::dequantize(const LayerOperation& of, std::int64_t elements) {
  std::int64_t weights = 0;
  for (const WeightShape& weight : of.weights) weights += weight.parameters() > 0 ? weight.blocks : 0;
  const std::int64_t times = of.is_of_experts() ? std::ssize(rows_.copies) : 1;
  const std::int64_t bytes = bytes_of(recipe_.lora.base, elements) + elements * element_bytes();
  kernel(times * bytes, MemoryKernel::other, times * weights);
}

// A kernel casts the product's input, or its output's gradient, unless a norm has done so; that of each expert by
// itself, all of which the host issues together (Transformer Engine, GroupedLinear: split_quantize).
void OperationWork::cast_input(const LayerOperation& of, std::int64_t elements, std::int64_t tensors) {
  if (!is_narrow(of.format)) return;
  const bool travels = is_forward() ? of.input_travels : of.output_travels;
  const CastOf what = is_forward() && of.reads_norm ? CastOf::norm : CastOf::other;
  const bool came_in_fp8 = travels && rows_.fp8_sent;
  const std::int64_t bytes =
      came_in_fp8 ? transpose_bytes(of.format, elements) : cast_bytes(of.format, elements, element_bytes(), what);
  if (bytes == 0) return;
  kernel(bytes, MemoryKernel::other, tensors);
  if (is_forward() || computes(with_kernels_)) work_.in_loops += tensors - 1;
}

// torchao casts input and weight forward, and backward both again, which were kept in elements, and the gradient of the
// output. Of fp8 parameters that were gathered the weight is one.
void OperationWork::cast_in_product(const LayerOperation& of, std::int64_t n, std::int64_t k) {
  if (!is_narrow(of.format)) return;
  const ElementwiseKernels& all = recipe_.elementwise();
  const std::int64_t inputs = rows(of) * k * (all.shares_casts ? 1 : products_in(of));
  const std::int64_t weights = recipe_.gathered_type() == NumberType::fp8 ? 0 : n * k;
  const auto cast = [&](const Passes& passes, std::int64_t count) {
    if (count > 0)
      kernel(passes.bytes(count, element_bytes()) + row_bytes(of.format, count, 0), MemoryKernel::add, passes.kernels);
  };
  if (is_forward()) {
    cast(all.cast, inputs);
    return cast(all.cast, weights);
  }
  for (std::int64_t i = 0; i < all.casts_of_gradient; ++i) cast(all.cast, rows(of) * n);
  cast(all.cast_again, inputs);
  cast(all.cast_again, weights);
  kernel(row_bytes(of.format, all.transposed * (rows(of) * n + inputs + n * k), 0), MemoryKernel::add,
         all.transposed > 0 ? 3 : 0);
}

// Besides its product: where a kernel adds it up; and the copy of the gradient from the product or, under autocast, the
// cast to fp32, and its division before ranks sum it.
void OperationWork::weight_gradient(std::int64_t elements, std::int64_t weights) {
  add_up(elements, recipe_.added_bytes(), weights);
  if (recipe_.flat_gradients()) kernel(elements * 2 * (stream() + element_bytes()), MemoryKernel::other, 2);
}

// Backward reads the cast that forward made of the weight, and casts its gradient to fp32; where a reduction of
// elements follows, back, too.
void OperationWork::cast_weight(std::int64_t elements) {
  cast_fp32(elements);
  if (!is_forward() && recipe_.reduces_in_pass()) cast_fp32(elements);
}

// FSDP2 copies what it has gathered to the parameters, in both directions, and gradients to what it reduces.
void OperationWork::copy_shards(std::int64_t elements, bool is_trained) {
  kernel(elements * 2 * element_bytes());
  if (!is_forward() && is_trained) kernel(elements * (element_bytes() + recipe_.reduction_bytes(element_bytes())));
}

void OperationWork::add_up(std::int64_t count, std::int64_t sum, std::int64_t weights) {
  if (sum > 0) kernel(count * (stream() + 2 * sum), MemoryKernel::other, weights);
}

}  // namespace hdpsim
