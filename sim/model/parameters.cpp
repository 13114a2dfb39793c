#include "sim/model/parameters.h"

#include "sim/model/layer_operations.h"
#include "sim/model/mixing.h"
#include "sim/model/shares.h"

namespace hdpsim {
namespace {

/// Parameters of a layer by what holds them.
struct LayerParameters {
  std::int64_t matrices = 0;         ///< Of all but experts.
  std::int64_t vectors = 0;          ///< Of all but experts.
  std::int64_t expert_matrices = 0;  ///< Of all experts ...
  std::int64_t expert_vectors = 0;

  [[nodiscard]] std::int64_t of_experts() const { return expert_matrices + expert_vectors; }
  [[nodiscard]] std::int64_t all() const { return matrices + vectors + of_experts(); }
};

LayerParameters layer_parameters(const Transformer& layer) {
  LayerParameters sum;
  for (const LayerOperation& operation : layer_operations(layer, {}).list) {
    const bool of_experts = operation.is_of_experts();
    (of_experts ? sum.expert_matrices : sum.matrices) += operation.matrices();
    (of_experts ? sum.expert_vectors : sum.vectors) += operation.vectors;
  }
  return sum;
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

// Equal parts of rows or columns, whole heads or not: a study's tp divides heads anyway.
std::int64_t equal_part(const Width& width, std::int64_t devices) {
  return width.is_cut ? divided(width.all(), devices) : width.all();
}

}  // namespace

std::int64_t final_norm_parameters(const Transformer& model) {
  return norm_parameters(model);
}

std::int64_t parameter_count(const Transformer& model) {
  return parameters_of_layers(model, 0, model.layers) + embedding_parameter_count(model) + norm_parameters(model);
}

std::int64_t layer_parameter_count(const Transformer& model) {
  return layer_parameters(model).all();
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

std::vector<WeightMatrix> weight_matrices(const Transformer& layer, std::int64_t tp, const ExpertDivision& experts) {
  std::vector<WeightMatrix> list;
  for (const LayerOperation& operation : layer_operations(layer, {}).list) {
    const bool is_divided = operation.is_of_experts() && experts.has_groups();
    const std::int64_t cut = is_divided ? experts.etp : tp;
    for (const WeightShape& weight : operation.weights) {
      if (weight.parameters() == 0) continue;
      list.push_back({equal_part(weight.rows, cut), equal_part(weight.columns, cut),
                      is_divided ? weight.count / experts.ep : weight.count, is_divided});
    }
  }
  return list;
}

DeviceParameters device_parameters(const Transformer& model, const std::vector<LayerRun>& runs, std::int64_t others,
                                   std::int64_t tp, const ExpertDivision& experts) {
  DeviceParameters held;
  std::int64_t vectors = others;
  for (const LayerRun& run : runs) {
    const Transformer alike = of_kind(model, run.kind);
    for (const WeightMatrix& matrix : weight_matrices(alike, tp, experts)) {
      (matrix.of_group ? held.experts : held.common) += run.count * matrix.parameters();
      held.weights += run.count * matrix.parameters();
    }
    const LayerParameters of_layer = layer_parameters(alike);
    vectors += run.count * of_layer.vectors;
    (experts.has_groups() ? held.experts : vectors) += run.count * of_layer.expert_vectors / experts.devices();
  }
  held.common += divided(vectors, tp);
  return held;
}

DeviceParameters trained_parameters(const Transformer& model, const std::vector<LayerRun>& runs, const Recipe& recipe,
                                    const DeviceParameters& held, std::int64_t tp) {
  if (!recipe.lora.is_on()) return held;
  DeviceParameters trained;
  for (const LayerRun& run : runs) {
    for (const LayerOperation& operation : layer_operations(of_kind(model, run.kind), recipe).list) {
      if (!operation.is_adapter) continue;
      const WeightShape& weight = operation.weights.front();
      trained.common += run.count * weight.rows.on(tp) * weight.columns.on(tp);
    }
  }
  trained.weights = trained.common;
  return trained;
}

Bytes parameter_bytes(NumberType type, std::int64_t parameters, std::int64_t weights, std::int64_t element_bytes) {
  if (type == NumberType::bf16) return Bytes(parameters * element_bytes);
  if (type == NumberType::fp32) return Bytes(parameters * fp32_bytes);
  return Bytes(bytes_of(type, weights) + (parameters - weights) * element_bytes);
}

std::int64_t active_parameter_count(const Transformer& model) {
  std::int64_t idle = 0;
  for (const LayerRun& run : layer_runs(model)) {
    const Transformer alike = of_kind(model, run.kind);
    if (!alike.moe) continue;
    idle += run.count * (alike.moe->experts - alike.moe->experts_per_token) * expert_parameter_count(alike);
  }
  return parameter_count(model) - idle;
}

std::int64_t expert_parameter_count(const Transformer& model) {
  return model.moe ? layer_parameters(model).of_experts() / model.moe->experts : 0;
}

Flops training_linear_flops(const Transformer& model, std::int64_t tokens, double kept, const Recipe& recipe) {
  std::int64_t weights = 0;
  for (const LayerOperation& operation : end_operations(model, {}).list) {
    if (operation.kind == OperationKind::product) weights += operation.matrices();
  }
  double mixing = 0;
  double dropped = 0;
  for (const LayerRun& run : layer_runs(model)) {
    const Transformer alike = of_kind(model, run.kind);
    const LayerParameters of_layer = layer_parameters(alike);
    weights += run.count * of_layer.matrices;
    if (alike.moe) {
      const std::int64_t taken = alike.moe->experts_per_token * (of_layer.expert_matrices / alike.moe->experts);
      weights += run.count * taken;
      dropped += (1 - kept) * static_cast<double>(run.count * taken);
    }
    mixing += static_cast<double>(run.count) * mixing_weights(alike);
  }
  const bool is_frozen = recipe.lora.is_on();
  const std::int64_t adapters = is_frozen ? trained_parameters(model, layer_runs(model), recipe, {}, 1).all() : 0;
  const double of_model = (is_frozen ? 4.0 : 6.0) * (static_cast<double>(weights) + mixing - dropped);
  return Flops((of_model + 6.0 * static_cast<double>(adapters)) * static_cast<double>(tokens));
}

}  // namespace hdpsim
