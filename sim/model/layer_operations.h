#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/model/kept_tensors.h"
#include "sim/model/operation.h"
#include "sim/model/recipe.h"
#include "sim/model/recompute.h"
#include "sim/model/shares.h"
#include "sim/model/transformer.h"
#include "sim/model/work.h"

namespace hdpsim {

/// A weight matrix, or `count` of them: its rows are columns of the product's output, its columns those of its input.
struct WeightShape {
  Width rows = {};
  Width columns = {};
  std::int64_t count = 1;
  std::int64_t blocks = 1;  ///< Equal blocks of rows, of each of which a device has its part: gate and up projection.
  std::string_view output = {};  ///< Name of what the product with it makes, if that is kept.

  [[nodiscard]] std::int64_t parameters() const { return rows.all() * columns.all() * count; }
};

/// A tensor that an operation keeps for its backward. It is stored once where several operations keep it by one name.
struct KeptOperand {
  KeptTensor tensor;       ///< `of_experts`: of the copies of tokens that experts compute.
  Recompute again;         ///< The modules that compute it again: recompute of any of them drops it.
  Recompute instead = {};  ///< Kept only where one of these modules is recomputed; none: always.
  bool in_full = false;    ///< Kept also where the layer as a whole is recomputed.
  /// Its name where a trade of heads lies between this operation and another one that keeps it, so that both layouts
  /// are stored. Empty: no trade lies there.
  std::string_view behind_trade = {};
  std::size_t operation = 0;  ///< Which keeps it, by its place in the list.
};

enum class OperationKind : std::uint8_t {
  product,     ///< Of the rows with the weights, which lie side by side.
  norm,        ///< Reads and writes a tensor; backward reads two and writes one.
  pass,        ///< A memory-bound kernel that passes over a tensor `forward` or `backward` times.
  activation,  ///< Of an MLP, between its products.
  fork,        ///< Where a branch leaves the residual stream: backward adds the gradients of both.
  residual,    ///< Adds a branch's output to the residual stream, behind dropout.
  attention,   ///< Softmax attention, whose launches the lowering writes (sim/program).
  mixing,      ///< Linear mixing: the products of mixing_products().
  lookup,      ///< Of the tokens' rows in the embedding table.
  loss,        ///< Cross-entropy of the logits.
};

/// The rows that a device computes.
enum class OperationRows : std::uint8_t {
  all,     ///< A row for each token of the HDP rank.
  stream,  ///< For each token of the device under sequence parallelism, otherwise for all.
  copies,  ///< For each copy of a token that the device's experts take.
};

/// One operation of a layer. What it costs forward and backward, its parameters and what it keeps follow from this.
struct LayerOperation {
  OperationKind kind = OperationKind::pass;
  DensePart part = DensePart::qkv;           ///< The part of the lowering that runs it forward ...
  DensePart backward_part = DensePart::qkv;  ///< ... and the one that runs its backward.
  OperationRows rows = OperationRows::all;
  std::array<WeightShape, 3> weights = {};  ///< Empty ones are none.
  std::int64_t vectors = 0;                 ///< Parameters that are no matrices: of a norm, biases, of a state space.

  // ---- Of a product
  ProductFormat format = ProductFormat::elements;
  std::int64_t sum_bytes = 0;   ///< Of an element of the sum to which it adds the weight's gradient; 0: to none.
  bool reads_norm = false;      ///< A norm writes its input, which can then write it in fp8.
  bool sums_bias = false;       ///< Backward sums the output's gradient for the gradient of a bias.
  bool input_travels = false;   ///< Its input comes from other devices ...
  bool output_travels = false;  ///< ... or its output goes to them, and the gradient of that comes from them.
  bool is_counted = true;       ///< Otherwise it is too small to be priced.
  bool is_trained = true;       ///< Backward computes the gradient of its weights.
  bool is_adapter = false;      ///< One of the two products of an adapter (Lora).
  /// Under per-operation recompute: whether the product with each weight, or the one with all, is computed again.
  std::array<bool, 3> again = {};

  // ---- Of a memory-bound kernel
  /// Of the tensor, or of tensors side by side; of an activation those that it writes; of attention and mixing what
  /// they read and write: queries, outputs, keys and values, or inputs and outputs.
  std::array<Width, 3> columns = {};
  std::int64_t forward = 0;  ///< How often it reads or writes them.
  std::int64_t backward = 0;
  std::int64_t number_bytes = 0;
  MemoryKernel kernel = MemoryKernel::other;
  std::int64_t kernels = 1;
  bool by_expert = false;    ///< So many for each of the device's experts, which a loop issues.
  bool on_stream = false;    ///< Of a norm: of the residual stream, which it casts under autocast.
  bool only_sorted = false;  ///< Runs only where a kernel puts copies in the order of a device's experts ...
  bool only_padded = false;  ///< ... or pads them.

  [[nodiscard]] std::int64_t matrices() const;  ///< Parameters of its weights, of all experts.
  [[nodiscard]] bool is_of_experts() const { return rows == OperationRows::copies; }
};

/// The operations of a layer under a recipe.
struct LayerOperations {
  Layer layer;
  std::int64_t element_bytes = 0;
  Recipe recipe;
  std::vector<LayerOperation> list;  ///< In the order of forward; backward runs them in reverse.
  std::vector<KeptOperand> kept;     ///< What they keep, in this order.
};

/// The operations of a layer of the model's kind 0. This is the only statement of what a layer is made of:
/// weight_matrices(), parameter counts, kept_tensors(), and work_of() read it.
[[nodiscard]] LayerOperations layer_operations(const Transformer& layer, const Recipe& recipe);

/// The operations before the first layer and behind the last one: the embedding, the final norm and the head.
[[nodiscard]] LayerOperations end_operations(const Transformer& model, const Recipe& recipe);

/// The rows of operations on one of `tp` devices, which cut a layer.
struct DeviceRows {
  std::int64_t tp = 1;
  std::int64_t all = 0;                   ///< OperationRows::all ...
  std::int64_t stream = 0;                ///< ... and OperationRows::stream.
  std::vector<std::int64_t> copies = {};  ///< By expert of the device.
  bool fp8_sent = false;                  ///< Copies, and gradients of results, come from other devices in fp8.
  bool sorted = false;                    ///< Kernels put copies in the order of the experts, and back ...
  bool padded = false;                    ///< ... and pad them to whole blocks of a narrow format.
};
/// Those of `tokens` tokens of an HDP rank.
[[nodiscard]] DeviceRows device_rows(std::int64_t tokens, std::int64_t tp, const Recipe& recipe);

/// The work of parts of a layer one after another, by the rules of the kinds of operations. A part that recomputes some
/// of another one's operations is forward (checked). Backward may be computed in two passes (Qi et al. 2023, section
/// 2.1): the products for the gradients of inputs with all memory-bound kernels, and those for the gradients of
/// weights. The embedding's scatter-add is a gradient of weights.
[[nodiscard]] LinearPart work_of(const LayerOperations& layer, const DeviceRows& rows,
                                 const std::vector<DensePart>& parts, Direction direction,
                                 Gradients gradients = Gradients::all);

}  // namespace hdpsim
