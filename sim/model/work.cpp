#include "sim/model/work.h"

#include "sim/base/check.h"

namespace hdpsim {
namespace {

constexpr std::int64_t bf16 = 2;
constexpr std::int64_t fp32 = 4;

std::int64_t divided(std::int64_t count, std::int64_t by) {
  HDPSIM_CHECK(by > 0, "division by {}", by);
  return (count + by - 1) / by;
}

/// What one device of a tensor-parallel group holds of a layer. Key and value heads fewer than devices are replicated.
struct Shard {
  std::int64_t query_width;  ///< Columns of Q, and rows of the output projection.
  std::int64_t kv_width;     ///< Columns of K and of V together.
  std::int64_t ffn;
  std::int64_t tokens;  ///< Of the sequence-parallel parts.
};

Shard shard_of(const Transformer& model, std::int64_t tokens, std::int64_t tp) {
  return {divided(model.heads, tp) * model.head_dim, 2 * divided(model.kv_heads, tp) * model.head_dim,
          divided(model.ffn_hidden, tp), divided(tokens, tp)};
}

std::int64_t mlp_matrices(const Transformer& model) {
  return model.gated_mlp ? 3 : 2;
}

std::int64_t attention_weights(const Transformer& model) {
  const std::int64_t query_width = model.heads * model.head_dim;
  const std::int64_t kv_width = model.kv_heads * model.head_dim;
  return model.hidden * (query_width + 2 * kv_width) + query_width * model.hidden;
}

std::int64_t expert_weights(const Transformer& model) {
  return mlp_matrices(model) * model.hidden * model.moe->expert_hidden;
}

/// Weights of the MLP; of a mixture of experts with its router and `experts` of the experts.
std::int64_t mlp_weights(const Transformer& model, std::int64_t experts) {
  if (!model.moe) return mlp_matrices(model) * model.hidden * model.ffn_hidden;
  return model.hidden * model.moe->experts + (experts + model.moe->shared_experts) * expert_weights(model);
}

/// One bias per output column of each product.
std::int64_t linear_biases(const Transformer& model) {
  const std::int64_t attention = (model.heads + 2 * model.kv_heads) * model.head_dim + model.hidden;
  const std::int64_t mlp = (mlp_matrices(model) - 1) * model.ffn_hidden + model.hidden;
  return attention + mlp;
}

std::int64_t norm_parameters(const Transformer& model) {
  return model.biases ? 2 * model.hidden : model.hidden;
}

/// The products of backward: the gradient of the input (m x n times n x k) and of the weight (k x m times m x n).
void append_backward(std::vector<Gemm>& gemms, const Gemm& forward) {
  gemms.push_back({forward.m, forward.k, forward.n});
  gemms.push_back({forward.k, forward.n, forward.m});
}

/// `forward` in the order of execution; backward runs through it from the end.
std::vector<Gemm> products(const std::vector<Gemm>& forward, Direction direction) {
  if (direction == Direction::forward) return forward;
  std::vector<Gemm> gemms;
  const std::vector<Gemm> last_first(forward.rbegin(), forward.rend());
  for (const Gemm& product : last_first) append_backward(gemms, product);
  return gemms;
}

// Every second product of a backward part, as append_backward() puts them.
LinearPart half_of(const LinearPart& backward, Gradients gradients) {
  const std::size_t first = gradients == Gradients::inputs ? 0 : 1;
  const bool keeps_kernels = (gradients == Gradients::weights) == (backward.part == DensePart::embedding);
  LinearPart half{.gemms = {}, .part = backward.part, .direction = backward.direction, .gradients = gradients};
  if (keeps_kernels) half.memory_bound = backward.memory_bound;
  for (std::size_t i = first; i < backward.gemms.size(); i += 2) half.gemms.push_back(backward.gemms[i]);
  return half;
}

/// Elements read and written, in bf16.
MemoryBound kernels(std::int64_t elements, std::int64_t count) {
  return {Bytes(elements * bf16), count};
}

}  // namespace

std::int64_t parameter_count(const Transformer& model) {
  return model.layers * layer_parameter_count(model) + embedding_parameter_count(model) + norm_parameters(model);
}

std::int64_t layer_parameter_count(const Transformer& model) {
  const std::int64_t experts = model.moe ? model.moe->experts : 0;
  const std::int64_t biases = model.biases ? linear_biases(model) : 0;
  return attention_weights(model) + mlp_weights(model, experts) + biases + 2 * norm_parameters(model);
}

std::int64_t embedding_parameter_count(const Transformer& model) {
  const std::int64_t tables = model.tied_embeddings ? 1 : 2;
  return (tables * model.vocabulary + model.learned_positions) * model.hidden;
}

std::int64_t causal_area(std::int64_t tokens) {
  return tokens * (tokens + 1) / 2;
}

Flops attention_flops(const Transformer& model, double area, Direction direction) {
  const Flops forward(4.0 * static_cast<double>(model.heads * model.head_dim) * area);
  return direction == Direction::forward ? forward : 2.5 * forward;
}

Flops training_linear_flops(const Transformer& model, std::int64_t tokens) {
  const std::int64_t experts = model.moe ? model.moe->experts_per_token : 0;
  const std::int64_t layer = attention_weights(model) + mlp_weights(model, experts);
  const std::int64_t weights = model.layers * layer + model.hidden * model.vocabulary;
  return Flops(6.0 * static_cast<double>(weights) * static_cast<double>(tokens));
}

LinearPart before_attention(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction) {
  const Shard shard = shard_of(model, tokens, tp);
  const std::int64_t hidden_elements = shard.tokens * model.hidden;
  const std::int64_t rotated = tokens * (shard.query_width + shard.kv_width / 2);  // Q and K, read and written in place
  LinearPart part{.gemms = {}, .part = DensePart::before_attention, .direction = direction};
  part.gemms = products({{tokens, shard.query_width + shard.kv_width, model.hidden}}, direction);
  if (direction == Direction::forward) {
    // norm: x in, y out; rope.
    part.memory_bound = kernels(2 * hidden_elements + 2 * rotated, 2);
  } else {
    // rope; norm: dy and x in, dx out; joining the residual's gradient: two in, one out.
    part.memory_bound = kernels(2 * rotated + 3 * hidden_elements + 3 * hidden_elements, 3);
  }
  return part;
}

LinearPart after_attention(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction) {
  HDPSIM_CHECK(!model.moe, "{} has experts, whose products are not known", model.name);
  const Shard shard = shard_of(model, tokens, tp);
  const std::int64_t hidden_elements = shard.tokens * model.hidden;
  const std::int64_t inner_elements = tokens * shard.ffn;
  const std::int64_t inner_products = mlp_matrices(model) - 1;  // gate and up are one product of twice the width
  LinearPart part{.gemms = {}, .part = DensePart::after_attention, .direction = direction};
  part.gemms = products({{tokens, model.hidden, shard.query_width},
                         {tokens, inner_products * shard.ffn, model.hidden},
                         {tokens, model.hidden, shard.ffn}},
                        direction);
  if (direction == Direction::forward) {
    // two residual additions: two in, one out; norm: one in, one out; activation: gate and up (or one) in, one out.
    part.memory_bound = kernels((3 + 3 + 2) * hidden_elements + (inner_products + 1) * inner_elements, 4);
  } else {
    // activation: what it read and the gradient in, as many gradients out; norm: dy and x in, dx out; residual: two in,
    // one out.
    part.memory_bound = kernels((2 * inner_products + 1) * inner_elements + (3 + 3) * hidden_elements, 3);
  }
  return part;
}

LinearPart embedding(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction) {
  // The table is cut by rows: a device owns 1 / tp of the looked-up rows and writes zeros for the others, which a
  // reduce-scatter then sums. Backward adds the rows' gradients to fp32 sums: gradient in, sums in and out.
  const std::int64_t own_elements = divided(tokens, tp) * model.hidden;
  LinearPart part{.gemms = {}, .part = DensePart::embedding, .direction = direction};
  if (direction == Direction::forward) {
    part.memory_bound = kernels(own_elements + tokens * model.hidden, 1);
  } else {
    part.memory_bound = {Bytes(own_elements * (bf16 + 2 * fp32)), 1};
  }
  return part;
}

LinearPart output_head(const Transformer& model, std::int64_t tokens, std::int64_t tp, Direction direction) {
  const std::int64_t vocabulary = divided(model.vocabulary, tp);
  const std::int64_t hidden_elements = divided(tokens, tp) * model.hidden;
  const std::int64_t logits = tokens * vocabulary;
  LinearPart part{.gemms = {}, .part = DensePart::output_head, .direction = direction};
  part.gemms = products({{tokens, vocabulary, model.hidden}}, direction);
  if (direction == Direction::forward) {
    // norm: one in, one out; the fused cross-entropy reads the logits once and keeps two numbers a token.
    part.memory_bound = kernels(2 * hidden_elements + logits, 2);
  } else {
    // cross-entropy turns the logits into their gradient in place; norm: dy and x in, dx out.
    part.memory_bound = kernels(2 * logits + 3 * hidden_elements, 2);
  }
  return part;
}

LinearPart input_gradients(const LinearPart& backward) {
  return half_of(backward, Gradients::inputs);
}

LinearPart weight_gradients(const LinearPart& backward) {
  return half_of(backward, Gradients::weights);
}

Bytes kv_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp) {
  return Bytes(tokens * shard_of(model, tokens, tp).kv_width * bf16);
}

Bytes hidden_bytes(const Transformer& model, std::int64_t tokens) {
  return Bytes(tokens * model.hidden * bf16);
}

Bytes activation_bytes(const Transformer& model, std::int64_t tokens, std::int64_t tp) {
  // Kept by a token: the inputs of both norms, of the QKV product and of the MLP (h each); Q, K, V; attention's output
  // and its fp32 log-sum-exp; of the MLP what the activation reads and what it writes. Korthikanti et al. count 34 h
  // for GPT: the same with 4 h and 4 h for the MLP, and 2 h for dropout masks, which long-context models have not.
  const std::int64_t inner = model.moe
                                 ? (model.moe->experts_per_token + model.moe->shared_experts) * model.moe->expert_hidden
                                 : model.ffn_hidden;
  const std::int64_t elements =
      4 * model.hidden + 2 * (model.heads + model.kv_heads) * model.head_dim + mlp_matrices(model) * inner;
  return Bytes(divided(tokens * (bf16 * elements + fp32 * model.heads), tp));
}

std::int64_t parameters_per_device(const Transformer& model, std::int64_t tp) {
  return divided(parameter_count(model), tp);
}

}  // namespace hdpsim
