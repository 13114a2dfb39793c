#include "kernels/exec/impl/dense_kernels.h"

namespace hdpsim::kernels::exec {

void DenseKernels::forward(const Linear& linear, const void* x, void* y) {
  backend_.run(MatrixProduct{.m = rows_.all,
                             .n = linear.out,
                             .k = linear.in,
                             .a = x,
                             .b = parameter(linear.weight),
                             .c = y,
                             .b_transposed = true});
}

void DenseKernels::backward(const Linear& linear, const void* x, const void* d_y, void* d_x, bool add) {
  input_gradient(linear, d_y, d_x, add);
  if (which_ == Gradients::all) weight_gradient(linear, x, d_y);
}

void DenseKernels::input_gradient(const Linear& linear, const void* d_y, void* d_x, bool add) {
  backend_.run(MatrixProduct{.m = rows_.all,
                             .n = linear.in,
                             .k = linear.out,
                             .a = d_y,
                             .b = parameter(linear.weight),
                             .c = d_x,
                             .beta = add ? 1.0F : 0.0F});
}

void DenseKernels::weight_gradient(const Linear& linear, const void* x, const void* d_y) {
  backend_.run(MatrixProduct{.m = linear.out,
                             .n = linear.in,
                             .k = rows_.all,
                             .a = d_y,
                             .b = x,
                             .c = gradient(linear.weight),
                             .a_transposed = true,
                             .fp32_result = true,
                             .beta = 1});
}

void DenseKernels::leave(void* place, const void* gradient, std::int64_t width) {
  if (which_ == Gradients::inputs) backend_.copy(place, gradient, bytes_of(rows_.all * width));
}

void DenseKernels::norm_forward(const NormShape& shape, const Tensor& weight, const void* x, void* y,
                                float* inverse_rms) {
  backend_.run(RmsNormForward{.tokens = shape.tokens,
                              .width = shape.width,
                              .x = x,
                              .weight = parameter(weight),
                              .y = y,
                              .inverse_rms = inverse_rms});
}

void DenseKernels::norm_backward(const NormShape& shape, const Tensor& weight, const void* x, const float* inverse_rms,
                                 void* d) {
  backend_.run(RmsNormBackward{.tokens = shape.tokens,
                               .width = shape.width,
                               .x = x,
                               .weight = parameter(weight),
                               .inverse_rms = inverse_rms,
                               .d_y = d,
                               .d_x = d,
                               .d_weight = gradient(weight)});
}

void DenseKernels::swiglu_forward(std::int64_t width, const void* gate_up, void* inner) {
  backend_.run(SwigluForward{.tokens = rows_.all, .width = width, .gate_up = gate_up, .y = inner});
}

void DenseKernels::swiglu_backward(std::int64_t width, void* gate_up, const void* d_inner) {
  backend_.run(
      SwigluBackward{.tokens = rows_.all, .width = width, .gate_up = gate_up, .d_y = d_inner, .d_gate_up = gate_up});
}

void DenseKernels::cast(const void* from, void* to, std::int64_t count, bool to_fp32) {
  if (from != to) backend_.run(Cast{.count = count, .from = from, .to = to, .to_fp32 = to_fp32});
}

}  // namespace hdpsim::kernels::exec
