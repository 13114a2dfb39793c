#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/base/division.h"
#include "sim/model/layer_kernels.h"

namespace hdpsim {

/// How the cross-entropy of the logits is computed; loss_forms has what each costs and keeps.
enum class Loss : std::uint8_t { fused, fp32, pytorch, huggingface, compiled, chunked, checkpointed, liger, cut };

/// The tokens whose logits exist at once.
enum class LossTokens : std::uint8_t {
  all,
  eighth,  ///< Of the micro-batch's.
  few,     ///< few_loss_tokens.
  inputs,  ///< As many as make the logits of a chunk as large as the inputs of all tokens.
  none,
};
inline constexpr std::int64_t few_loss_tokens = 256;

/// One way to compute it. Passes are for an element of the logits, and so is what is held: the numbers that exist of it
/// at the fullest moment; kernels are those of a chunk. The product that makes the logits, and its two of backward, are
/// not among them.
struct LossForm {
  Loss loss;
  std::string_view word;  ///< In studies (`training.loss`).
  Passes forward;
  Passes backward;
  Passes held;  ///< Without kernels.
  LossTokens tokens = LossTokens::all;
  std::int64_t sums =
      0;  ///< Passes over the gradient of the head's weight with which a chunk after the first adds to it.
  bool multiplies_again = false;  ///< Backward makes the logits of a chunk again.
};

/// All of them, in the order of the enumeration.
///
/// fused: one kernel reads bf16 logits, and backward turns them into their gradient in place (Transformer Engine,
/// Megatron-LM's cross_entropy_loss_fusion). fp32: Megatron-LM's vocab_parallel_cross_entropy on an fp32 copy, kernel
/// by kernel: copy, maximum, difference, exponential, sum and quotient; backward multiplies and casts.
///
/// pytorch: F.cross_entropy(logits.float()), as torchtitan (components/loss.py) and HuggingFace
/// (loss/loss_utils.py, ForCausalLMLoss) have it: a cast; log_softmax, whose kernel reads a row three times (maximum,
/// sum, result; aten/src/ATen/native/cuda/SoftMax.cu, cunn_SoftMaxForward) and keeps its result; backward fills a dense
/// gradient of the picked numbers (nll_loss_backward), from which and from the kept result another kernel, which reads
/// the former twice, makes the logits' gradient; and a cast. Result and both gradients exist at once, all in fp32.
/// huggingface: until release 4.48 of transformers the logits are shifted against the labels by a copy, and backward
/// fills a gradient with the copy's: forward then holds logits, fp32 copy, shifted copy and result.
///
/// compiled: inductor casts within its kernels, which read the logits for the maximum and for the sum, and again for
/// their gradient, which is written beside them.
///
/// chunked: the pytorch form for an eighth of the tokens at a time, each with its backward (torchtitan,
/// ChunkedLossWrapper). checkpointed: for 256 tokens at a time, whose logits backward makes again (TRL, `chunked_nll`,
/// sft_trainer.py, _CHUNKED_LM_HEAD_CHUNK_SIZE). liger: a kernel reads a chunk's logits twice and writes their gradient
/// in place, and both products of backward follow for the chunk (Liger-Kernel, ops/fused_linear_cross_entropy.py). cut:
/// no logits reach memory; backward makes them again block by block, and leaves out blocks whose gradient is below the
/// precision, so that forward and backward take about what three products take (Wijmans et al. 2024, arXiv 2411.09009;
/// apple/ml-cross-entropy, README: 134.8 ms on an A100, where three products are 29 TFLOP).
inline constexpr auto loss_forms = std::to_array<LossForm>({
    {Loss::fused, "fused", {1, 0}, {2, 0}, {1, 0}},
    {Loss::fp32, "fp32", {1, 9, 6}, {1, 3, 2}, {1, 1}},
    {Loss::pytorch, "pytorch", {1, 5, 3}, {1, 6, 4}, {0, 3}},
    {Loss::huggingface, "huggingface", {1, 7, 4}, {1, 9, 6}, {1, 3}},
    {Loss::compiled, "compiled", {2, 0, 2}, {2, 0}, {2, 0}},
    {Loss::chunked, "chunked", {1, 5, 3}, {1, 6, 4}, {0, 3}, LossTokens::eighth, 3},
    {Loss::checkpointed, "checkpointed", {1, 5, 3}, {2, 11, 7}, {0, 3}, LossTokens::few, 3, true},
    {Loss::liger, "liger", {3, 0}, {0, 0, 0}, {1, 0}, LossTokens::inputs, 2},
    {Loss::cut, "cut", {0, 0, 0}, {0, 0, 0}, {0, 0}, LossTokens::none},
});

[[nodiscard]] constexpr const LossForm& form_of(Loss loss) {
  return loss_forms[static_cast<std::size_t>(loss)];
}

/// Tokens of a chunk whose logits exist at once; `tokens` of them have `vocabulary` logits and `hidden` inputs each.
[[nodiscard]] inline std::int64_t loss_tokens(LossTokens which, std::int64_t tokens, std::int64_t vocabulary,
                                              std::int64_t hidden) {
  constexpr std::int64_t chunks = 8;
  std::int64_t power = 1;
  switch (which) {
    case LossTokens::all:
      return tokens;
    case LossTokens::eighth:
      return divided(tokens, chunks);
    case LossTokens::few:
      return tokens < few_loss_tokens ? tokens : few_loss_tokens;
    case LossTokens::inputs:  // the next power of two, as Liger takes it
      while (power < divided(tokens, divided(vocabulary, hidden))) power *= 2;
      return power < tokens ? power : tokens;
    case LossTokens::none:
      return 0;
  }
  return tokens;
}

}  // namespace hdpsim
