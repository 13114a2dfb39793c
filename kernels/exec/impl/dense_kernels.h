#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/exec/impl/activations.h"
#include "kernels/exec/parameter_tensors.h"
#include "kernels/spec/backend.h"
#include "sim/model/transformer.h"
#include "sim/model/work.h"

namespace hdpsim::kernels::exec {

/// Rows of `width` elements.
struct NormShape {
  std::int64_t tokens = 0;
  std::int64_t width = 0;
};

/// The kernels of dense parts on one device, with its parameters and their gradients. Sums of products and gradients of
/// parameters, which are added to, are fp32.
class DenseKernels {
 public:
  /// `parameters` and `gradients` are those of the device's layout, in the backend's memory.
  DenseKernels(Backend& backend, const void* parameters, float* gradients)
      : backend_(backend), parameters_(parameters), gradients_(gradients) {}

  /// From now on for the rows of a micro-batch, and these gradients.
  void begin(const Rows& rows, Gradients which) {
    rows_ = rows;
    which_ = which;
  }

  /// The same kernels for so many rows of something else than tokens.
  [[nodiscard]] DenseKernels of_rows(std::int64_t rows) const {
    DenseKernels other = *this;
    other.rows_ = {.all = rows, .own = rows, .share = rows, .padded = rows, .begin = 0};
    return other;
  }

  [[nodiscard]] Backend& backend() const { return backend_; }
  [[nodiscard]] const Rows& rows() const { return rows_; }
  [[nodiscard]] Gradients which() const { return which_; }
  /// Bytes of `count` elements.
  [[nodiscard]] std::size_t bytes_of(std::int64_t count) const {
    return static_cast<std::size_t>(count) * element_bytes(backend_.element());
  }
  [[nodiscard]] const void* parameter(const Tensor& tensor) const {
    return static_cast<const std::byte*>(parameters_) + bytes_of(tensor.begin);
  }
  [[nodiscard]] float* gradient(const Tensor& tensor) const { return gradients_ + tensor.begin; }

  void forward(const Linear& linear, const void* x, void* y);
  /// d_x = d_y W (+ d_x, if `add`) and d_W += d_y^T x, if the pass has both.
  void backward(const Linear& linear, const void* x, const void* d_y, void* d_x, bool add = false);
  void input_gradient(const Linear& linear, const void* d_y, void* d_x, bool add);
  void weight_gradient(const Linear& linear, const void* x, const void* d_y);
  /// Copies a gradient [T, width] to where the second part of backward looks for it, if this is the first one.
  void leave(void* place, const void* gradient, std::int64_t width);
  void norm_forward(const NormShape& shape, const Tensor& weight, const void* x, void* y, float* inverse_rms);
  /// Works in place: d_y becomes d_x.
  void norm_backward(const NormShape& shape, const Tensor& weight, const void* x, const float* inverse_rms, void* d);
  /// inner = silu(gate) up. gate_up: [T, 2 width].
  void swiglu_forward(std::int64_t width, const void* gate_up, void* inner);
  /// The gradient of gate_up takes its place.
  void swiglu_backward(std::int64_t width, void* gate_up, const void* d_inner);
  /// Between fp32 and elements.
  void cast(const void* from, void* to, std::int64_t count, bool to_fp32);

 private:
  Backend& backend_;
  const void* parameters_;
  float* gradients_;
  Rows rows_;
  Gradients which_ = Gradients::all;
};

/// The base of rotary positions: Llama's default. Model files may differ, but sim/model does not read it.
inline constexpr double rotation_base = 10000;

/// What a part of a layer works with.
struct LayerWork {
  DenseKernels& kernels;
  const Transformer& kind;  ///< The device's shard of the model, with all layers of the kind of this one.
  const LayerTensors& tensors;
  const LayerActivations& layer;
  const SharedActivations& shared;
};

}  // namespace hdpsim::kernels::exec
