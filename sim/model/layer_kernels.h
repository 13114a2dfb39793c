#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hdpsim {

/// Who writes the element-wise kernels of a layer: norms, positions, activations, sums.
enum class LayerKernels : std::uint8_t {
  fused,     ///< Transformer Engine and Megatron-LM: one kernel an operation, and products with joined weights.
  eager,     ///< PyTorch, operator by operator: one kernel each, whose result is in memory.
  compiled,  ///< torch.compile of a layer: inductor fuses what lies between products and attention.
};
/// Their words in studies, in this order.
inline constexpr auto layer_kernel_words = std::to_array<std::string_view>({"fused", "eager", "compiled"});

/// What kernels read and write for an element of a tensor: numbers of the model's type and of fp32.
struct Passes {
  std::int64_t elements = 0;
  std::int64_t fp32 = 0;
  std::int64_t kernels = 1;  ///< 0: the kernel of a neighbour does it.

  [[nodiscard]] constexpr std::int64_t bytes(std::int64_t count, std::int64_t element_bytes) const {
    return count * (elements * element_bytes + fp32 * 4);
  }
};
struct BothPasses {
  Passes forward;
  Passes backward;
};

/// The element-wise kernels of a layer. Operators of eager PyTorch are counted one by one, and their backward by
/// tools/autograd/derivatives.yaml of PyTorch; those on one number a row count as kernels without bytes.
struct ElementwiseKernels {
  BothPasses norm;                   ///< RMSNorm, for an element of its input.
  BothPasses layer_norm;             ///< LayerNorm, and RMSNorm where one kernel does it.
  BothPasses gated;                  ///< A gated activation, for an element that it writes.
  BothPasses activation;             ///< One that is not gated.
  bool again_with_backward = false;  ///< An activation that is computed again is written by its backward's kernel.
  BothPasses rope;                   ///< For an element of queries and keys.
  Passes residual;                   ///< The sum of attention's output with the stream, for an element of the stream.
  Passes fork;                       ///< Backward of a branch's begin: adds the branch's gradient to the stream's.
  Passes added_gradient = {};        ///< The same for a second product of one input, for an element of that.
  /// A cast to fp8 of torchao, besides the bytes that it writes in fp8: of what a product reads and what backward reads
  /// for the first time, and of what backward casts again.
  Passes cast = {};
  Passes cast_again = {};
  std::int64_t casts_of_gradient = 1;  ///< Of an output's gradient, which both products of backward read.
  bool shares_casts = true;            ///< Products of one input share its cast.
  std::int64_t transposed = 0;         ///< Reads and writes in fp8 that put a side of a product along k, in backward.
};

/// By LayerKernels.
///
/// Eager: RMSNorm of HuggingFace (LlamaRMSNorm) and of torchtitan until February 2025
/// (models/norms.py) casts to fp32, squares,
/// takes the mean, adds epsilon, takes the root, multiplies, casts back, and multiplies with the weight; both terms of
/// the input's gradient are summed in fp32. Positions are complex numbers in fp32 (torchtitan,
/// apply_rotary_emb; rotate_half of HuggingFace moves as much forward). silu and the product with the other projection
/// are two kernels.
///
/// Compiled: a norm is one kernel, behind attention with the sum before it; backward adds the stream's gradient in the
/// norm's kernel, and another one reads its inputs again for the weight's gradient. Inductor writes no kernels for
/// complex numbers: positions run as in eager mode. Backward of the activation writes its output, too, if that is not
/// kept. Casts of torchao (tensor_to_amax, to_fp8_saturated): absolute value, maximum, fp32, product with the scale,
/// clamp, fp8, and four kernels that make the scale; compiled, one kernel for the maximum and one for the cast, in the
/// order that its product needs, and maxima stay from forward.
inline constexpr std::array<ElementwiseKernels, 3> elementwise_kernels = {{
    {.norm = {{2, 0}, {3, 0}},
     .layer_norm = {{2, 0}, {3, 0}},
     .gated = {{3, 0}, {5, 0}},
     .activation = {{2, 0}, {3, 0}},
     .rope = {{2, 0}, {2, 0}},
     .residual = {3, 0},
     .fork = {3, 0}},
    {.norm = {{4, 7, 8}, {8, 19, 16}},
     .layer_norm = {{2, 0}, {5, 0, 2}},
     .gated = {{5, 0, 2}, {9, 0, 3}},
     .activation = {{2, 0}, {3, 0}},
     .rope = {{2, 4, 6}, {2, 4, 6}},
     .residual = {3, 0},
     .fork = {3, 0},
     .added_gradient = {3, 0},
     .cast = {4, 6, 10},
     .cast_again = {4, 6, 10},
     .casts_of_gradient = 2,
     .shares_casts = false,
     .transposed = 2},
    {.norm = {{2, 0}, {5, 0, 3}},
     .layer_norm = {{2, 0}, {5, 0, 3}},
     .gated = {{3, 0}, {5, 0}},
     .activation = {{2, 0}, {3, 0}},
     .again_with_backward = true,
     .rope = {{2, 4, 6}, {2, 4, 6}},
     .residual = {2, 0, 0},
     .fork = {1, 0, 0},
     .added_gradient = {2, 0, 0},
     .cast = {2, 0, 2},
     .cast_again = {1, 0}},
}};

}  // namespace hdpsim
