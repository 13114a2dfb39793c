#include "sim/model/parameters.h"

#include <algorithm>

#include "sim/model/mixing.h"
#include "sim/model/shares.h"
#include "sim/model/weight_matrices.h"

namespace hdpsim {
namespace {

/// Weights of a part of a layer, of all experts.
std::int64_t weights(const Transformer& model, WeightPart part) {
  std::int64_t sum = 0;
  for (const WeightMatrix& matrix : weight_matrices(model, 1, 1)) {
    if (matrix.part == part) sum += matrix.parameters();
  }
  return sum;
}

std::int64_t attention_weights(const Transformer& model) {
  return weights(model, WeightPart::inputs) + weights(model, WeightPart::projection);
}

/// Weights of the MLP; for a mixture of experts with those of `experts` experts.
std::int64_t mlp_weights(const Transformer& model, std::int64_t experts) {
  const std::int64_t common = weights(model, WeightPart::mlp);
  return model.moe ? common + experts * (weights(model, WeightPart::experts) / model.moe->experts) : common;
}

std::int64_t experts_of_token(const Transformer& model) {
  return model.moe ? model.moe->experts_per_token : 0;
}

std::int64_t mlp_biases(const Transformer& model, std::int64_t inner) {
  return (mlp_matrices(model) - 1) * inner + model.hidden;
}

/// One bias per output column of each product.
std::int64_t linear_biases(const Transformer& model) {
  const std::int64_t attention = query_width(model) + key_width(model) + value_width(model) + model.hidden;
  return (mixes_tokens(model) ? attention : 0) + (has_mlp(model) ? mlp_biases(model, model.ffn_hidden) : 0);
}

std::int64_t norm_parameters(const Transformer& model) {
  return model.biases ? 2 * model.hidden : model.hidden;
}

/// Parameters of token mixing besides its projections, in some families.
std::int64_t attention_extras(const Transformer& model) {
  if (model.linear) return model.linear->convolved * model.linear->taps + model.linear->parameters;
  const std::int64_t biases = model.qkv_biases ? query_width(model) + key_width(model) + value_width(model) : 0;
  const std::int64_t latents = model.latent ? model.latent->query_rank + model.latent->kv_rank : 0;
  const std::int64_t indexer = scores_keys(model) ? 2 * model.indexer->head_dim : 0;  // a norm of its keys, with biases
  return biases + (model.output_bias ? model.hidden : 0) + (model.qk_norm ? 2 * model.head_dim : 0) + latents +
         indexer + (model.sinks ? model.heads : 0);
}

std::int64_t router_biases(const Transformer& model) {
  return model.moe && model.moe->biases ? model.moe->experts : 0;
}

/// The products of a layer's linear mixing for a token, as parameters that a token multiplies once.
double mixing_weights(const Transformer& model) {
  if (!model.linear) return 0;
  constexpr std::int64_t many = 1 << 16;  // tokens, so that rounding to chunks does not count
  double products = 0;
  for (const Gemm& gemm : mixing_products(*model.linear, many, 1)) {
    products += static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  }
  return products / static_cast<double>(many);
}

}  // namespace

std::int64_t mlp_matrices(const Layer& layer) {
  return layer.gated_mlp ? 3 : 2;
}

std::int64_t final_norm_parameters(const Transformer& model) {
  return norm_parameters(model);
}

std::int64_t parameter_count(const Transformer& model) {
  return parameters_of_layers(model, 0, model.layers) + embedding_parameter_count(model) + norm_parameters(model);
}

std::int64_t layer_parameter_count(const Transformer& model) {
  const std::int64_t biases = model.biases ? linear_biases(model) : 0;
  const std::int64_t shared = mlp_weights(model, 0) + router_biases(model);
  return attention_weights(model) + attention_extras(model) + shared + expert_layer_parameter_count(model) + biases +
         (model.norms + (model.joins ? 2 : 0)) * norm_parameters(model);
}

std::int64_t parameters_of_runs(const Transformer& model, const std::vector<LayerRun>& runs) {
  std::int64_t sum = 0;
  for (const LayerRun& run : runs) sum += run.count * layer_parameter_count(of_kind(model, run.kind));
  return sum;
}

std::int64_t parameters_of_layers(const Transformer& model, std::int64_t first, std::int64_t count) {
  return parameters_of_runs(model, layer_runs(model, first, count));
}

std::int64_t embedding_parameter_count(const Transformer& model) {
  return parameters_around_layers(model, true, true) - final_norm_parameters(model);
}

std::int64_t input_parameters(const Transformer& model) {
  return (model.vocabulary + model.learned_positions) * model.hidden;
}

std::int64_t output_parameters(const Transformer& model, bool beside_input) {
  const bool has_table = beside_input && model.tied_embeddings;
  return final_norm_parameters(model) + (has_table ? 0 : model.vocabulary * model.hidden);
}

std::int64_t parameters_around_layers(const Transformer& model, bool input, bool output) {
  return (input ? input_parameters(model) : 0) + (output ? output_parameters(model, input) : 0);
}

DeviceParameters device_parameters(const Transformer& model, const std::vector<LayerRun>& runs, std::int64_t others,
                                   std::int64_t tp, std::int64_t ep) {
  DeviceParameters held;
  std::int64_t vectors = others;
  for (const LayerRun& run : runs) {
    const Transformer alike = of_kind(model, run.kind);
    for (const WeightMatrix& matrix : weight_matrices(alike, tp, ep)) {
      (matrix.whole_experts ? held.experts : held.common) += run.count * matrix.parameters();
    }
    std::int64_t beside = layer_parameter_count(alike);
    for (const WeightMatrix& matrix : weight_matrices(alike, 1, 1)) beside -= matrix.parameters();
    if (ep > 1) {
      const std::int64_t of_experts = expert_layer_parameter_count(alike) - weights(alike, WeightPart::experts);
      held.experts += run.count * of_experts / ep;
      beside -= of_experts;
    }
    vectors += run.count * beside;
  }
  held.common += divided(vectors, tp);
  return held;
}

std::int64_t active_parameter_count(const Transformer& model) {
  std::int64_t idle = 0;
  for (const LayerRun& run : layer_runs(model)) {
    const Transformer alike = of_kind(model, run.kind);
    if (alike.moe) idle += run.count * (alike.moe->experts - experts_of_token(alike)) * expert_parameter_count(alike);
  }
  return parameter_count(model) - idle;
}

std::int64_t expert_parameter_count(const Transformer& model) {
  if (!model.moe) return 0;
  const std::int64_t biases = model.moe->biases ? mlp_biases(model, model.moe->expert_hidden) : 0;
  return weights(model, WeightPart::experts) / model.moe->experts + biases;
}

std::int64_t expert_layer_parameter_count(const Transformer& model) {
  return model.moe ? model.moe->experts * expert_parameter_count(model) : 0;
}

Flops training_linear_flops(const Transformer& model, std::int64_t tokens, double kept) {
  std::int64_t weights = model.predictions * model.hidden * model.vocabulary;
  double mixing = 0;
  double dropped = 0;
  for (const LayerRun& run : layer_runs(model)) {
    const Transformer alike = of_kind(model, run.kind);
    const std::int64_t mlp = mlp_weights(alike, experts_of_token(alike));
    weights += run.count * (attention_weights(alike) + mlp);
    if (alike.moe) dropped += (1 - kept) * static_cast<double>(run.count * (mlp - mlp_weights(alike, 0)));
    mixing += static_cast<double>(run.count) * mixing_weights(alike);
  }
  return Flops(6.0 * (static_cast<double>(weights) + mixing - dropped) * static_cast<double>(tokens));
}

}  // namespace hdpsim
