#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/experts.h"
#include "sim/model/layers.h"
#include "sim/model/recipe.h"
#include "sim/model/recompute.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// Parameters of the whole model / of one layer / of some layers / of layers first ... first + count - 1 / of the
/// embedding and output matrices together / of the final norm.
[[nodiscard]] std::int64_t parameter_count(const Transformer& model);
[[nodiscard]] std::int64_t layer_parameter_count(const Transformer& model);
[[nodiscard]] std::int64_t parameters_of_runs(const Transformer& model, const std::vector<LayerRun>& runs);
[[nodiscard]] std::int64_t parameters_of_layers(const Transformer& model, std::int64_t first, std::int64_t count);
[[nodiscard]] std::int64_t embedding_parameter_count(const Transformer& model);
[[nodiscard]] std::int64_t final_norm_parameters(const Transformer& model);

/// Parameters before the first layer: tables of the tokens and of learned positions. / Those behind the last one: the
/// final norm and, unless the table of the tokens is tied and on the same device, that of the output. / Those that a
/// device has of both.
[[nodiscard]] std::int64_t input_parameters(const Transformer& model);
[[nodiscard]] std::int64_t output_parameters(const Transformer& model, bool beside_input);
[[nodiscard]] std::int64_t parameters_around_layers(const Transformer& model, bool input, bool output);

/// Weight matrices of one shape on one device.
struct WeightMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t count = 1;
  bool of_group = false;  ///< Of experts that expert groups divide.

  [[nodiscard]] std::int64_t parameters() const { return rows * columns * count; }
  friend bool operator==(const WeightMatrix&, const WeightMatrix&) = default;
};

/// The weight matrices of a layer of the model's kind 0 on one of `tp` devices: all parameters but biases and the
/// vectors of norms and of state spaces. A device has rows of the products that make queries, keys, values and the
/// MLP's inner tensor, and columns of those that follow. Queries, keys and values are a matrix each; the gate is one
/// matrix with the up projection, as Megatron-Core has them. What makes latents, the indexer and the router are whole
/// on every device. Experts are divided and cut as `experts` says.
[[nodiscard]] std::vector<WeightMatrix> weight_matrices(const Transformer& layer, std::int64_t tp,
                                                        const ExpertDivision& experts);

/// Parameters of one device.
struct DeviceParameters {
  std::int64_t common = 0;   ///< Those of which the whole data-parallel group has the same.
  std::int64_t experts = 0;  ///< Of experts that expert groups divide, which fewer devices have.
  std::int64_t weights = 0;  ///< Those of both that are matrices of layers.

  [[nodiscard]] std::int64_t all() const { return common + experts; }
  DeviceParameters& operator+=(const DeviceParameters& other) {
    common += other.common;
    experts += other.experts;
    weights += other.weights;
    return *this;
  }
  friend DeviceParameters operator*(std::int64_t count, const DeviceParameters& each) {
    return {count * each.common, count * each.experts, count * each.weights};
  }
};

/// Those of one of `tp` devices, which have some layers and `others` around them. It has the weight_matrices() of each
/// layer, and of norms, biases and `others` a part of tp, rounded up: norms are whole on every device, but less than a
/// thousandth of a layer. O(kinds of layers).
[[nodiscard]] DeviceParameters device_parameters(const Transformer& model, const std::vector<LayerRun>& runs,
                                                 std::int64_t others, std::int64_t tp, const ExpertDivision& experts);

/// Those of them that are trained: all or, with Recipe::lora, the adapters' instead.
[[nodiscard]] DeviceParameters trained_parameters(const Transformer& model, const std::vector<LayerRun>& runs,
                                                  const Recipe& recipe, const DeviceParameters& held, std::int64_t tp);

/// Bytes of parameters in a type, in which only matrices of layers are kept if it has fewer bits than an element: the
/// `weights` among them. NumberType::bf16 stands for elements.
[[nodiscard]] Bytes parameter_bytes(NumberType type, std::int64_t parameters, std::int64_t weights,
                                    std::int64_t element_bytes);

/// Parameters of the whole model without the routed experts that a token does not take.
[[nodiscard]] std::int64_t active_parameter_count(const Transformer& model);

/// Parameters of one of the experts among which a router chooses.
[[nodiscard]] std::int64_t expert_parameter_count(const Transformer& model);

/// FLOPs of all linear work of the whole model for a number of tokens, forward and backward: 6 per parameter and token,
/// with the output head and without the embedding lookup. Of a mixture's experts only those count that a token takes;
/// of linear mixing, its products. `kept`: the share of the tokens' copies that experts keep (kept_copies()). Of frozen
/// parameters 4: they have no gradient; and 6 of adapters (Recipe::lora).
[[nodiscard]] Flops training_linear_flops(const Transformer& model, std::int64_t tokens, double kept = 1,
                                          const Recipe& recipe = {});

}  // namespace hdpsim
