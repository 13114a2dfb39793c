#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/mixing.h"
#include "sim/model/operation.h"
#include "sim/model/recipe.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// The dense work of a transformer between its attentions, divided at the collectives of the tensor-parallel group:
/// norms and residuals are on tokens / tp or on all tokens (Recipe::sequence_parallel), products on all tokens with
/// heads, inner width and vocabulary divided by tp. In the order of forward.
enum class DensePart : std::uint8_t {
  embedding,           ///< Forward: lookup, backward: scatter-add. The table is cut by rows.
  attention_norm,      ///< Backward also joins the residual's gradient.
  qkv,                 ///< Projections and rope, or what makes the inputs of linear mixing.
  mixing,              ///< Linear mixing between its inputs and its output: no weights.
  attention_output,    ///< Output projection of attention or of linear mixing.
  attention_residual,  ///< No work in backward.
  mlp_norm,            ///< Backward also joins the residual's gradient.
  mlp,
  mlp_residual,  ///< No work in backward.
  final_norm,
  head,       ///< Output projection and cross-entropy.
  mlp_inner,  ///< The forward of mlp without its last product, whose output backward does not read: for recomputation.
  mlp_activation,  ///< The activation alone of the forward of mlp: for recomputation.
  // In place of mlp, what expert_layer() is made of:
  shared_experts,
  router,
  to_latent,  ///< The product that narrows tokens before they travel.
  copies,     ///< Of tokens, in the order of their experts.
  sent_cast,  ///< Of tokens that travel in fp8.
  experts,
  expert_activation,  ///< For recomputation; that of shared experts is mlp_activation.
  sum_of_copies,
  from_latent,  ///< The product that widens the sum of a token's copies.
  // The forward of a part with the products alone that per-operation recompute computes again:
  qkv_again,
  attention_output_again,
  mlp_again,  ///< Up to the last product.
};

/// The gradients that a backward part computes: a product has those of its input and of its weight.
enum class Gradients { all, inputs, weights };

/// What a host thread issues, by what it costs the thread (HostTimes).
struct HostCalls {
  std::int64_t kernels = 0;     ///< By operations of the framework, with their Python and autograd.
  std::int64_t in_loops = 0;    ///< By loops in C++ of such an operation, behind its first.
  std::int64_t narrow = 0;      ///< Products in a narrow format, whose scales and casts the framework manages besides.
  std::int64_t dispatches = 0;  ///< All-to-alls of experts, with what prepares them and sorts copies.

  HostCalls& operator+=(const HostCalls& other) {
    kernels += other.kernels;
    in_loops += other.in_loops;
    narrow += other.narrow;
    dispatches += other.dispatches;
    return *this;
  }
  friend bool operator==(const HostCalls&, const HostCalls&) = default;
};

/// Consecutive dense work on one device of a tensor-parallel group: matrix products one after another and the
/// memory-bound kernels between them.
struct LinearPart {
  std::vector<Gemm> gemms;
  std::vector<MemoryBound> memory_bound;  ///< At most one of each kind.
  std::vector<DensePart> parts;           ///< The parts in this order; their costs are the two members above.
  Direction direction = Direction::forward;
  Gradients gradients = Gradients::all;  ///< Those that a backward part computes.
  /// Of a backward part, where `gemms` have the last product for the gradient of an input, and of a weight.
  std::optional<std::size_t> last_of_inputs = {};
  std::optional<std::size_t> last_of_weights = {};

  std::int64_t not_issued = 0;  ///< Kernels of CUDA graphs, but for the launch of each.
  /// Of the products and casts of a device's experts all but the first, which loops in C++ start (Transformer Engine,
  /// general_grouped_gemm and split_quantize).
  std::int64_t in_loops = 0;
  /// Products in a narrow format outside of CUDA graphs; those of a device's experts are one.
  std::int64_t narrow = 0;

  void add(const MemoryBound& kernels);
  [[nodiscard]] Bytes traffic() const;          ///< Bytes moved by all memory-bound kernels.
  [[nodiscard]] std::int64_t launches() const;  ///< Products and memory-bound kernels.
  [[nodiscard]] HostCalls host_calls() const { return {launches() - not_issued - in_loops, in_loops, narrow, 0}; }
};

/// `parts` one after another for `tokens` tokens of an HDP rank, per device of a tensor-parallel group of `tp`
/// (work_of()).
[[nodiscard]] LinearPart dense_work(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                                    const std::vector<DensePart>& parts, Direction direction,
                                    const Recipe& recipe = {});

/// One layer's dense work without its collectives, experts and linear mixing. Before attention: input norm, QKV
/// projection, rope. After it: output projection, residual, norm, MLP, residual.
[[nodiscard]] LinearPart before_attention(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                                          Direction direction, const Recipe& recipe = {});
[[nodiscard]] LinearPart after_attention(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                                         Direction direction, const Recipe& recipe = {});
/// Embedding lookup (forward: read, backward: scatter-add), final norm, output projection and fused cross-entropy.
[[nodiscard]] LinearPart embedding(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction,
                                   const Recipe& recipe = {});
[[nodiscard]] LinearPart output_head(const Transformer& model, std::int64_t tokens, std::int64_t tp,
                                     Direction direction, const Recipe& recipe = {});

/// Bytes of one layer's keys and values for `tokens` tokens on one device (exchanged_keys()): the message of one ring
/// step.
[[nodiscard]] Bytes kv_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp);
/// Bytes of one tensor-parallel all-gather or reduce-scatter: the hidden states of `tokens` tokens, counted as
/// gathered.
[[nodiscard]] Bytes hidden_bytes(const Transformer& model, std::int64_t tokens);

}  // namespace hdpsim
