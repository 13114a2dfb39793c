#pragma once

#include <cstdint>

namespace hdpsim::kernels {

// The rest of a transformer layer. "element" is the backend's type (fp32 on CPUs, bf16 on GPUs); arithmetic is fp32.
// All tensors are dense and row-major. Gradients of parameters are fp32 and added to; other gradients are written.

/// y = x weight / rms(x), rms(x) = sqrt(mean(x^2) + epsilon), a row at a time.
/// x, y: element [tokens, width]; weight: element [width]; inverse_rms: fp32 [tokens], kept for backward.
/// Traffic: 2 tokens width elements.
struct RmsNormForward {
  std::int64_t tokens = 0;
  std::int64_t width = 0;
  float epsilon = 1e-5F;
  const void* x = nullptr;
  const void* weight = nullptr;
  void* y = nullptr;
  float* inverse_rms = nullptr;
};

/// With r = inverse_rms and g = dy weight: dx = r g - x r^3 mean(g x); d_weight += sum over tokens of dy x r.
/// dx may be dy. Traffic: 3 tokens width elements.
struct RmsNormBackward {
  std::int64_t tokens = 0;
  std::int64_t width = 0;
  const void* x = nullptr;
  const void* weight = nullptr;
  const float* inverse_rms = nullptr;
  const void* d_y = nullptr;
  void* d_x = nullptr;
  float* d_weight = nullptr;
};

/// Rotates element i of the first half of each head with element i of the second half (as Llama does) by the angle
/// position x base^(-2 i / dim); by the negative angle where `inverse`, which is the backward pass. In place.
/// x: element [tokens, stride], heads x dim of it, heads `head_stride` elements apart; positions: [tokens], of each
/// token in its document.
struct Rope {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  std::int64_t stride = 0;
  double base = 10000;
  bool inverse = false;
  void* x = nullptr;
  const std::int32_t* positions = nullptr;
  std::int64_t head_stride = 0;  ///< 0: dim, which GPUs alone have.
};

/// to[r, p] = from[r, p], or the sum of both where `add`: `width` elements of each of `parts` parts of a row. Rows lie
/// `stride` elements apart, and the parts of a row `part`: 0 where all of them are in one place, to be read by every
/// part, or to which all are added in their order.
struct CopyColumns {
  std::int64_t rows = 0;
  std::int64_t parts = 0;
  std::int64_t width = 0;
  const void* from = nullptr;
  std::int64_t from_stride = 0;
  std::int64_t from_part = 0;
  void* to = nullptr;
  std::int64_t to_stride = 0;
  std::int64_t to_part = 0;
  bool add = false;
};

/// y = silu(gate) up, silu(g) = g / (1 + exp(-g)). gate_up: element [tokens, 2 width], gate first; y: [tokens, width].
struct SwigluForward {
  std::int64_t tokens = 0;
  std::int64_t width = 0;
  const void* gate_up = nullptr;
  void* y = nullptr;
};

/// d_gate_up from d_y; d_gate_up may be gate_up.
struct SwigluBackward {
  std::int64_t tokens = 0;
  std::int64_t width = 0;
  const void* gate_up = nullptr;
  const void* d_y = nullptr;
  void* d_gate_up = nullptr;
};

/// y = silu(x) over `count` elements; y may be x.
struct SiluForward {
  std::int64_t count = 0;
  const void* x = nullptr;
  void* y = nullptr;
};

/// d_x = silu'(x) d_y, silu'(x) = s (1 + x (1 - s)) with s = 1 / (1 + exp(-x)). d_y: fp32; d_x may be d_y where the
/// element is fp32.
struct SiluBackward {
  std::int64_t count = 0;
  const void* x = nullptr;
  const float* d_y = nullptr;
  void* d_x = nullptr;
};

/// y = s x with s = 1 / (1 + exp(-gate)), over `count` elements.
struct GateForward {
  std::int64_t count = 0;
  const void* gate = nullptr;
  const void* x = nullptr;
  void* y = nullptr;
};

/// d_x = s d_y, d_gate = s (1 - s) x d_y; d_x may be d_y.
struct GateBackward {
  std::int64_t count = 0;
  const void* gate = nullptr;
  const void* x = nullptr;
  const void* d_y = nullptr;
  void* d_gate = nullptr;
  void* d_x = nullptr;
};

/// y = a + b over `count` elements; y may be a or b. fp32: a, b and y are fp32 whatever the backend's element, as the
/// gradients are that ring attention adds up on their way.
struct Add {
  std::int64_t count = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  bool fp32 = false;
};

/// y[t] = table[ids[t]]. table: element [vocabulary, width]; ids: [tokens] in [0, vocabulary), or -1, which gives
/// zeros: the row is in another device's part of the table.
struct EmbeddingForward {
  std::int64_t tokens = 0;
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  const void* table = nullptr;
  const std::int32_t* ids = nullptr;
  void* y = nullptr;
};

/// d_table[ids[t]] += d_y[t], but for ids of -1. d_table: fp32 [vocabulary, width].
struct EmbeddingBackward {
  std::int64_t tokens = 0;
  std::int64_t vocabulary = 0;
  std::int64_t width = 0;
  const std::int32_t* ids = nullptr;
  const void* d_y = nullptr;
  float* d_table = nullptr;
};

/// Softmax cross-entropy and its gradient in one pass over the logits, which never exist in fp32:
/// loss[t] = log sum exp(logits[t]) - logits[t, target]; then logits[t] becomes (softmax - one_hot(target)) scale.
/// logits: element [tokens, vocabulary]; targets: [tokens], -1 is ignored (loss 0, gradient 0); loss: fp32 [tokens],
/// not scaled. scale: 1 / (targets that count in the whole batch), so that the loss is a mean over tokens wherever they
/// are computed.
///
/// log_sum_exp: given where the logits are only some columns of a vocabulary that is cut among devices: fp32 [tokens],
/// that of all columns. A target that is not below `vocabulary` is then on another device: loss 0, gradient softmax
/// scale.
struct CrossEntropy {
  std::int64_t tokens = 0;
  std::int64_t vocabulary = 0;
  float scale = 1;
  void* logits = nullptr;
  const std::int32_t* targets = nullptr;
  float* loss = nullptr;
  const float* log_sum_exp = nullptr;
};

/// result[t] = log sum exp(logits[t]), natural logarithm; -inf without a column. logits: element [tokens, vocabulary];
/// result: fp32 [tokens]. Traffic: the logits once.
struct LogSumExp {
  std::int64_t tokens = 0;
  std::int64_t vocabulary = 0;
  const void* logits = nullptr;
  float* result = nullptr;
};

/// result[t] = log sum over p of exp(partial[p, t]): of the log-sum-exps of some parts of a vocabulary, that of the
/// whole. partial: fp32 [parts, tokens], some but not all of a token -inf; result: fp32 [tokens], which may be the
/// first part.
struct JoinLogSumExp {
  std::int64_t tokens = 0;
  std::int64_t parts = 0;
  const float* partial = nullptr;
  float* result = nullptr;
};

/// One AdamW step (Loshchilov and Hutter 2019), t = step counted from 1:
/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
/// p -= rate (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + decay p).
/// master, gradient, m, v: fp32 [count]; parameter: element [count], the rounded copy of master (may be null).
struct Adam {
  std::int64_t count = 0;
  std::int64_t step = 1;
  float rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float epsilon = 1e-8F;
  float decay = 0;
  float gradient_scale = 1;  ///< The gradient is multiplied by this first.
  float* master = nullptr;
  const float* gradient = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  void* parameter = nullptr;
};

/// to[i] = from[i], fp32 to the element type (round to nearest even) or back. May not overlap unless the types are
/// equal.
struct Cast {
  std::int64_t count = 0;
  const void* from = nullptr;
  void* to = nullptr;
  bool to_fp32 = false;  ///< from: element, to: fp32. Otherwise the other way round.
};

/// C = A B + beta C with A [m, k], B [k, n], C [m, n], each row-major or, where its flag says so, stored transposed.
/// a, b: element. c: fp32 where `fp32_result`, else element; accumulation is fp32. Work: 2 m n k.
struct MatrixProduct {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  bool a_transposed = false;  ///< Stored [k, m].
  bool b_transposed = false;  ///< Stored [n, k], as the weights of a linear layer y = x W^T are.
  bool fp32_result = false;
  float beta = 0;
};

}  // namespace hdpsim::kernels
