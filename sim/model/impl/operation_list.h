#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "sim/model/layer_operations.h"
#include "sim/model/layers.h"

namespace hdpsim {

/// Writes the operations of a layer one after another. References that it returns hold until the next operation.
class OperationList {
 public:
  OperationList(const Transformer& layer, const Recipe& recipe)
      : layer_(layer),
        recipe_(recipe),
        operations_{.layer = layer, .element_bytes = layer.element_bytes, .recipe = recipe, .list = {}, .kept = {}} {
    operations_.list.reserve(usual_operations);
    operations_.kept.reserve(usual_operations);
  }

  [[nodiscard]] const Transformer& layer() const { return layer_; }
  [[nodiscard]] const Recipe& recipe() const { return recipe_; }
  [[nodiscard]] bool casts() const { return is_narrow(recipe_.products) && !recipe_.casts_in_products(); }
  [[nodiscard]] Width hidden() const { return {.count = layer_.hidden}; }
  /// Parallel branches read one norm.
  [[nodiscard]] bool shares_norm() const { return layer_.norms == 1 && mixes_tokens(layer_); }

  // ---- Operations; what the recipe says of each kind is set

  LayerOperation& product(DensePart part, std::initializer_list<WeightShape> weights);
  /// The adapters of the last operation, a product, by the rows of what they are added to: that of all its weights, or
  /// of each; those without rows do not exist. `again`: the modules that compute the product again.
  struct Adapted {
    AdapterTarget target;
    Width rows;
  };
  void adapt(std::initializer_list<Adapted> adapters, Recompute again);
  /// Whether the input of a product is kept for the gradient of its weight or of the adapters that read it.
  [[nodiscard]] bool keeps_input_of(AdapterTargets targets) const {
    const Lora& lora = recipe_.lora;
    return !lora.is_on() || (!lora.dropout && lora.targets.intersects(targets));
  }
  LayerOperation& norm(DensePart part, Width columns, std::int64_t vectors);
  LayerOperation& pass(DensePart part, std::array<Width, 3> columns, std::int64_t forward, std::int64_t backward);
  LayerOperation& activation(DensePart part, Width columns);
  /// The cast of what an activation reads to fp8, and backward from there (Recipe::fp8_activation_input).
  void activation_cast(DensePart part, Width inner, OperationRows rows);
  LayerOperation& add(const LayerOperation& operation);
  /// A norm of the residual stream, and the branch that begins behind it.
  LayerOperation& stream_norm(DensePart part);
  void fork(DensePart part);
  /// The norm of a branch's output if it has one, which `norm_backward` runs backward, and its sum with the stream.
  void join_stream(DensePart part, DensePart norm_backward, DensePart backward, const KeptOperand& output,
                   const KeptOperand& mask);

  // ---- Kept tensors

  /// What the last operation keeps.
  void keep(KeptOperand operand);
  /// Of elements.
  [[nodiscard]] KeptTensor elements(std::string_view name, Width columns) const;
  /// The input of a product, in the type in which it multiplies (Transformer Engine, LayerNormLinear and Linear).
  [[nodiscard]] KeptTensor product_input(std::string_view name, Width columns) const;
  /// The input of an MLP's activation, by the width of the inner tensor.
  [[nodiscard]] KeptTensor activation_input(std::string_view name, Width columns) const;
  /// A tensor like the residual stream, of so many bytes a token.
  [[nodiscard]] KeptTensor of_stream(std::string_view name, std::int64_t bytes_per_token) const;
  /// The input of a norm of the residual stream. Under autocast a norm keeps its input as it casts it to elements; one
  /// that is computed again needs the stream itself, in fp32. In eager PyTorch it keeps its input as it casts it to
  /// fp32, and what the weight multiplies, in elements.
  void keep_norm_input(std::string_view name, std::string_view stream, Recompute again);

  [[nodiscard]] LayerOperations take() { return std::move(operations_); }

 private:
  void add_adapter(const LayerOperation& product, const Adapted& adapted, Recompute again);

  static constexpr std::size_t usual_operations = 24;

  void count(LayerOperation& product);

  const Transformer& layer_;
  const Recipe& recipe_;
  LayerOperations operations_;
  std::int64_t products_ = 0;  ///< So far, as PyTorch counts them.
};

/// The targets that read what the MLP's first product reads.
inline constexpr AdapterTargets mlp_input_targets{AdapterTarget::gate_proj, AdapterTarget::up_proj,
                                                  AdapterTarget::linear_fc1};

/// How tokens are mixed, from the layer's first norm to the sum of its output with the stream; for a layer that mixes.
void add_mixing_branch(OperationList& list);
/// From attention's input to its output, by what the layer has: plain or latent attention, or linear mixing.
void add_attention(OperationList& list);
void add_latent_attention(OperationList& list);
void add_linear_mixing(OperationList& list);
/// What attention, which is the last operation, keeps for its backward besides queries, keys and values.
void keep_attention_output(OperationList& list);
/// The MLP or the experts, with their norm and their sum with the stream; for a layer that has them.
void add_mlp_branch(OperationList& list);
void add_experts(OperationList& list);

}  // namespace hdpsim
