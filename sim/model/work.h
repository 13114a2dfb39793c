#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/operation.h"
#include "sim/model/recompute.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// Parameters of the whole model / of one layer (one that has experts, if any has) / of layers first ... first + count
/// - 1 / of the embedding and output matrices together.
[[nodiscard]] std::int64_t parameter_count(const Transformer& model);
[[nodiscard]] std::int64_t layer_parameter_count(const Transformer& model);
[[nodiscard]] std::int64_t parameters_of_layers(const Transformer& model, std::int64_t first, std::int64_t count);
[[nodiscard]] std::int64_t embedding_parameter_count(const Transformer& model);

/// Exact number of (query, key) pairs of a causal mask over one sequence: s (s + 1) / 2.
[[nodiscard]] std::int64_t causal_area(std::int64_t tokens);

/// FLOPs of attention scores and values over an area of the mask, all heads of one layer: forward 4 h d area,
/// backward 2.5 x that (five matrix products instead of two).
[[nodiscard]] Flops attention_flops(const Transformer& model, double area, Direction direction);
/// FLOPs of all linear work of the whole model for a number of tokens, forward and backward (6 per parameter and token,
/// the output head included, the embedding lookup not). Of a mixture of experts those that a token takes.
[[nodiscard]] Flops training_linear_flops(const Transformer& model, std::int64_t tokens);

/// The dense work of a transformer between its attentions, cut where the devices of a tensor-parallel group meet:
/// norms and residuals are on tokens / tp or on all tokens (DenseRules), products on all tokens with heads, inner width
/// and vocabulary divided by tp. In the order of forward.
enum class DensePart : std::uint8_t {
  embedding,           ///< Forward: lookup, backward: scatter-add. The table is cut by rows.
  attention_norm,      ///< Backward also joins the residual's gradient.
  qkv,                 ///< Projection and rope.
  attention_output,    ///< Projection.
  attention_residual,  ///< Has no work in backward.
  mlp_norm,            ///< Backward also joins the residual's gradient.
  mlp,
  mlp_residual,  ///< Has no work in backward.
  final_norm,
  head,       ///< Output projection and cross-entropy.
  mlp_inner,  ///< Of mlp, forward, all but its last product, which leaves nothing to backward: where it is done again.
  mlp_activation,  ///< Of mlp, forward, where it alone is done again.
};

/// What a backward part computes: a product has the gradients of its input and of its weight.
enum class Gradients { all, inputs, weights };

/// A stretch of dense work on one device of a tensor-parallel group: matrix products one after another and the
/// memory-bound kernels between them.
struct LinearPart {
  std::vector<Gemm> gemms;
  std::vector<MemoryBound> memory_bound;  ///< At most one of each kind.
  std::vector<DensePart> parts;           ///< What it computes, in this order; its costs are the two above.
  Direction direction = Direction::forward;
  Gradients gradients = Gradients::all;  ///< Of a backward part.

  void add(const MemoryBound& kernels);
  [[nodiscard]] Bytes traffic() const;          ///< Of all memory-bound kernels.
  [[nodiscard]] std::int64_t launches() const;  ///< Of products and memory-bound kernels.
};

/// How a framework computes dense work.
struct DenseRules {
  bool sequence_parallel = true;  ///< Norms and residuals on tokens / tp (Korthikanti et al. 2022), or on all tokens.
  /// The products of layers in fp8, with the casts that they need; that of the head stays in bf16 (Transformer Engine).
  bool fp8 = false;
  /// Over parameters in fp32, as autocast of PyTorch computes (FSDP without a param_dtype): each product casts its
  /// weight to bf16, and the weight's gradient to fp32 and, to be reduced, back. The residual stream is fp32, as the
  /// embedding leaves it: norms cast it to bf16, products' outputs join it in fp32.
  bool autocast = false;
  /// Weights are views of a layer's flat parameter, so that their gradients are copied into a flat one, which is
  /// divided before ranks sum it in elements (FSDP of PyTorch 2.0: flat_param.py, _get_unflat_views; _runtime_utils.py,
  /// _div_if_needed).
  bool flat_gradients = false;
  /// Bytes of an element of the sums over micro-batches to which a kernel of its own adds each weight's gradient, as
  /// Megatron-LM did before gradient_accumulation_fusion (megatron/model/distributed.py, main_grad.add_). 0: the
  /// product that makes a gradient adds it up.
  std::int64_t added_bytes = 0;
  /// The loss is computed on an fp32 copy of the logits, kernel by kernel (Megatron-LM, vocab_parallel_cross_entropy):
  /// copy, maximum, difference, exponential, sum and quotient; backward multiplies by the loss's gradient and casts.
  bool fp32_loss = false;
};

/// What lies between the products of an MLP: gate and up (or one) in, one out; backward: what it read and the gradient
/// in, as many gradients out.
[[nodiscard]] MemoryBound activation(const Transformer& model, std::int64_t rows, std::int64_t width,
                                     Direction direction);

/// Forward parts of a layer with a dense MLP that are done again, in their order; attention itself stands between `qkv`
/// and `attention_output`. A module is done as a whole, as Megatron-LM's checkpoints do it: the MLP with its last
/// product, the layer with its last residual.
[[nodiscard]] std::vector<DensePart> parts_again(Recompute recompute);
/// Of a layer's forward products, in FLOPs, the share that is done again. Experts count as what a token takes of them.
[[nodiscard]] double linear_share_again(const Transformer& model, Recompute recompute);

/// `parts` one after another for `tokens` tokens of an HDP rank, per device of a tensor-parallel group of `tp`.
[[nodiscard]] LinearPart dense_work(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                                    const std::vector<DensePart>& parts, Direction direction,
                                    const DenseRules& rules = {});

/// One layer's dense work without the collectives inside. Before attention: input norm, QKV projection, rope. After it:
/// output projection, residual, norm, MLP, residual.
[[nodiscard]] LinearPart before_attention(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                                          Direction direction, const DenseRules& rules = {});
[[nodiscard]] LinearPart after_attention(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                                         Direction direction, const DenseRules& rules = {});
/// Embedding lookup (forward: read, backward: scatter-add), final norm, output projection and fused cross-entropy.
[[nodiscard]] LinearPart embedding(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction,
                                   const DenseRules& rules = {});
[[nodiscard]] LinearPart output_head(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                                     Direction direction, const DenseRules& rules = {});

/// A backward part in two (Qi et al. 2023, section 2.1): the products for the gradients of inputs with all memory-bound
/// kernels, and those for the gradients of weights. The embedding's scatter-add is a gradient of weights.
[[nodiscard]] LinearPart input_gradients(const LinearPart& backward);
[[nodiscard]] LinearPart weight_gradients(const LinearPart& backward);

/// Bytes of one layer's keys and values for `tokens` tokens on one device: the message of one ring step.
[[nodiscard]] Bytes kv_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp);
/// Bytes of one tensor-parallel all-gather or reduce-scatter: the hidden states of `tokens` tokens, gathered size.
[[nodiscard]] Bytes hidden_bytes(const Transformer& model, std::int64_t tokens);
/// Bytes of activations that one layer keeps for backward per device (flash attention, no dropout): the kept_tensors()
/// of sim/model/kept_tensors.h.
[[nodiscard]] Bytes activation_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                                     Recompute recompute = {}, bool sequence_parallel = true);
/// Parameters that one device holds: everything divided by tp (the norms' share is not worth a term).
[[nodiscard]] std::int64_t parameters_per_device(const Transformer& model, std::int64_t tp);

}  // namespace hdpsim
