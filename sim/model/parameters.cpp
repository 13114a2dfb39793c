#include "sim/model/parameters.h"

#include <algorithm>

#include "sim/model/shares.h"

namespace hdpsim {
namespace {

std::int64_t attention_weights(const Transformer& model) {
  return model.hidden * (query_width(model) + 2 * kv_width(model)) + query_width(model) * model.hidden;
}

/// Weights of the MLP; for a mixture of experts those of its router, of `experts` experts and of the shared experts.
std::int64_t mlp_weights(const Transformer& model, std::int64_t experts) {
  if (!model.moe) return mlp_matrices(model) * model.hidden * model.ffn_hidden;
  const MixtureOfExperts& moe = *model.moe;
  const std::int64_t gates = moe.experts + (moe.shared_gate ? 1 : 0);
  const std::int64_t shared = mlp_matrices(model) * model.hidden * moe.shared_hidden;
  return model.hidden * gates + experts * expert_parameter_count(model) + shared;
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

/// Parameters of attention besides its projections, in some families.
std::int64_t attention_extras(const Transformer& model) {
  const std::int64_t biases = model.qkv_biases ? (model.heads + 2 * model.kv_heads) * model.head_dim : 0;
  return biases + (model.qk_norm ? 2 * model.head_dim : 0);
}

}  // namespace

std::vector<LayerRun> layer_runs(const Transformer& model, std::int64_t first, std::int64_t count) {
  if (!model.moe) return {{count, false}};
  const std::vector<std::int64_t>& dense = model.moe->dense_layers;
  std::vector<LayerRun> runs;
  const auto add = [&](std::int64_t layers, bool has_experts) {
    if (layers <= 0) return;
    if (!runs.empty() && runs.back().has_experts == has_experts) {
      runs.back().count += layers;
    } else {
      runs.push_back({layers, has_experts});
    }
  };
  std::int64_t next = first;
  for (auto at = std::lower_bound(dense.begin(), dense.end(), first); at != dense.end() && *at < first + count; ++at) {
    add(*at - next, true);
    add(1, false);
    next = *at + 1;
  }
  add(first + count - next, true);
  return runs;
}

std::int64_t expert_layers(const Transformer& model, std::int64_t first, std::int64_t count) {
  if (!model.moe) return 0;
  const std::vector<std::int64_t>& dense = model.moe->dense_layers;
  const auto begin = std::lower_bound(dense.begin(), dense.end(), first);
  return count - (std::lower_bound(begin, dense.end(), first + count) - begin);
}

Transformer with_dense_layers(const Transformer& model) {
  Transformer dense = model;
  dense.moe.reset();
  return dense;
}

std::int64_t mlp_matrices(const Transformer& model) {
  return model.gated_mlp ? 3 : 2;
}

std::int64_t parameter_count(const Transformer& model) {
  return parameters_of_layers(model, 0, model.layers) + embedding_parameter_count(model) + norm_parameters(model);
}

std::int64_t layer_parameter_count(const Transformer& model) {
  const std::int64_t experts = model.moe ? model.moe->experts : 0;
  const std::int64_t biases = model.biases ? linear_biases(model) : 0;
  return attention_weights(model) + attention_extras(model) + mlp_weights(model, experts) + biases +
         2 * norm_parameters(model);
}

std::int64_t parameters_of_layers(const Transformer& model, std::int64_t first, std::int64_t count) {
  const std::int64_t with_experts = expert_layers(model, first, count);
  const std::int64_t dense = layer_parameter_count(with_dense_layers(model));
  return with_experts * layer_parameter_count(model) + (count - with_experts) * dense;
}

std::int64_t embedding_parameter_count(const Transformer& model) {
  const std::int64_t tables = model.tied_embeddings ? 1 : 2;
  return (tables * model.vocabulary + model.learned_positions) * model.hidden;
}

std::int64_t expert_parameter_count(const Transformer& model) {
  if (!model.moe) return 0;
  return mlp_matrices(model) * model.hidden * model.moe->expert_hidden;
}

std::int64_t expert_layer_parameter_count(const Transformer& model) {
  return model.moe ? model.moe->experts * expert_parameter_count(model) : 0;
}

Flops training_linear_flops(const Transformer& model, std::int64_t tokens) {
  const std::int64_t with_experts = expert_layers(model, 0, model.layers);
  const std::int64_t dense = (model.layers - with_experts) * mlp_weights(with_dense_layers(model), 0);
  const std::int64_t sparse = model.moe ? with_experts * mlp_weights(model, model.moe->experts_per_token) : 0;
  const std::int64_t weights =
      model.layers * attention_weights(model) + dense + sparse + model.hidden * model.vocabulary;
  return Flops(6.0 * static_cast<double>(weights) * static_cast<double>(tokens));
}

double linear_share_again(const Transformer& model, Recompute recompute) {
  const std::int64_t projection = model.heads * model.head_dim * model.hidden;
  const std::int64_t qkv = attention_weights(model) - projection;
  const std::int64_t mlp = mlp_weights(model, model.moe ? model.moe->experts_per_token : 0);
  const std::int64_t again = (recompute.has(LayerModule::qkv) ? qkv : 0) +
                             (recompute.has(LayerModule::projection) ? projection : 0) +
                             (recompute.has(model.moe ? LayerModule::experts : LayerModule::mlp) ? mlp : 0);
  return static_cast<double>(again) / static_cast<double>(qkv + projection + mlp);
}

}  // namespace hdpsim
