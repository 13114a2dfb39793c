#include "sim/model/impl/operation_list.h"

#include <algorithm>

#include "sim/model/product_format.h"

namespace hdpsim {
namespace {

// The cast of a product's weights, which the module with the product makes again.
KeptOperand cast_of_weights(DensePart part, std::int64_t bytes, bool is_cut) {
  if (part == DensePart::qkv) {
    return {{.name = "casts of the weights of queries, keys and values", .cut = is_cut, .bytes = bytes},
            {LayerModule::qkv}};
  }
  if (part == DensePart::attention_output) {
    return {{.name = "cast of the projection's weight", .cut = is_cut, .bytes = bytes}, {LayerModule::projection}};
  }
  return {{.name = "casts of the MLP's weights", .cut = is_cut, .of_mlp = true, .bytes = bytes}, {LayerModule::mlp}};
}

// What an adapter keeps: the output of its first product, and what dropout leaves of its input.
constexpr std::array<std::string_view, adapter_targets> adapter_outputs = {
    "columns of q_proj's adapter",    "columns of k_proj's adapter",     "columns of v_proj's adapter",
    "columns of o_proj's adapter",    "columns of gate_proj's adapter",  "columns of up_proj's adapter",
    "columns of down_proj's adapter", "columns of linear_qkv's adapter", "columns of linear_fc1's adapter"};
constexpr std::array<std::string_view, adapter_targets> adapter_inputs = {
    "input of q_proj's adapter",    "input of k_proj's adapter",     "input of v_proj's adapter",
    "input of o_proj's adapter",    "input of gate_proj's adapter",  "input of up_proj's adapter",
    "input of down_proj's adapter", "input of linear_qkv's adapter", "input of linear_fc1's adapter"};

}  // namespace

std::int64_t LayerOperation::matrices() const {
  std::int64_t sum = 0;
  for (const WeightShape& weight : weights) sum += weight.parameters();
  return sum;
}

LayerOperation& OperationList::add(const LayerOperation& operation) {
  LayerOperation& added = operations_.list.emplace_back(operation);
  added.number_bytes = layer_.element_bytes;
  return added;
}

void OperationList::keep(KeptOperand operand) {
  operand.operation = operations_.list.size() - 1;
  operations_.kept.push_back(operand);
}

// Under autocast a product keeps the cast of its weight.
LayerOperation& OperationList::product(DensePart part, std::initializer_list<WeightShape> weights) {
  LayerOperation& product = add({.kind = OperationKind::product,
                                 .part = part,
                                 .backward_part = part,
                                 .format = recipe_.products,
                                 .sum_bytes = recipe_.summed_bytes(),
                                 .sums_bias = layer_.biases});
  std::copy(weights.begin(), weights.end(), product.weights.begin());
  product.is_trained = !recipe_.lora.is_on();
  count(product);
  if (!recipe_.autocast()) return product;
  const bool is_cut = std::any_of(product.weights.begin(), product.weights.end(), [](const WeightShape& weight) {
    return weight.rows.is_cut || weight.columns.is_cut;
  });
  keep(cast_of_weights(part, product.matrices() * layer_.element_bytes, is_cut));
  return product;
}

void OperationList::adapt(std::initializer_list<Adapted> adapters, Recompute again) {
  if (!recipe_.lora.is_on()) return;
  const LayerOperation product = operations_.list.back();
  for (const Adapted& each : adapters) {
    if (recipe_.lora.targets.has(each.target) && each.rows.all() > 0) add_adapter(product, each, again);
  }
}

// Without dropout it reads what the product reads.
void OperationList::add_adapter(const LayerOperation& product, const Adapted& adapted, Recompute again) {
  const auto target = static_cast<std::size_t>(adapted.target);
  const Width read = product.weights.front().columns;
  const Width inner{.count = recipe_.lora.rank};
  const auto keep_for_backward = [&](KeptTensor tensor) {
    tensor.of_mlp = product.part == DensePart::mlp;
    keep({tensor, again});
  };
  if (recipe_.lora.dropout) {
    const std::int64_t bytes = 2 * layer_.element_bytes + mask_bytes;
    pass(product.part, {read}, bytes, bytes).number_bytes = 1;
    KeptTensor dropped = elements(adapter_inputs[target], read);
    dropped.bytes_per_token += mask_bytes * read.all();
    keep_for_backward(dropped);
  }
  const auto multiply = [&](Width rows, Width columns) {
    LayerOperation& one = this->product(product.part, {WeightShape{rows, columns}});
    one.is_trained = true;
    one.is_adapter = true;
    one.format = ProductFormat::elements;
    one.sums_bias = false;
  };
  multiply(inner, read);
  multiply(adapted.rows, inner);
  keep_for_backward(elements(adapter_outputs[target], inner));
  pass(product.part, {adapted.rows}, 2, 2);
  pass(product.part, {adapted.rows}, 3, 0).kernel = MemoryKernel::add;
  pass(product.part, {read}, 0, 3).kernel = MemoryKernel::add;
}

// Per-operation recompute keeps the output of the first, the third, ... of all products.
void OperationList::count(LayerOperation& product) {
  if (recipe_.recompute != Recompute::per_operation) return;
  for (std::size_t i = 0; i < product.weights.size(); ++i) {
    const bool has_own = i == 0 || recipe_.is_pytorch();
    product.again[i] = has_own && product.weights[i].parameters() > 0 && ++products_ % 2 == 0;
  }
}

LayerOperation& OperationList::norm(DensePart part, Width columns, std::int64_t vectors) {
  return add(
      {.kind = OperationKind::norm, .part = part, .backward_part = part, .vectors = vectors, .columns = {columns}});
}

LayerOperation& OperationList::pass(DensePart part, std::array<Width, 3> columns, std::int64_t forward,
                                    std::int64_t backward) {
  return add({.kind = OperationKind::pass,
              .part = part,
              .backward_part = part,
              .columns = columns,
              .forward = forward,
              .backward = backward});
}

LayerOperation& OperationList::activation(DensePart part, Width columns) {
  return add({.kind = OperationKind::activation, .part = part, .backward_part = part, .columns = {columns}});
}

void OperationList::activation_cast(DensePart part, Width columns, OperationRows rows) {
  if (!recipe_.fp8_activation_input) return;
  columns.unit = layer_.gated_mlp ? 2 : 1;
  LayerOperation& cast = pass(part, {columns}, 1, 1);
  cast.rows = rows;
  cast.number_bytes = layer_.element_bytes + 1;
}

LayerOperation& OperationList::stream_norm(DensePart part) {
  LayerOperation& of_stream = norm(part, hidden(), norm_parameters(layer_));
  of_stream.rows = OperationRows::stream;
  of_stream.on_stream = true;
  return of_stream;
}

void OperationList::fork(DensePart part) {
  add({.kind = OperationKind::fork,
       .part = part,
       .backward_part = part,
       .rows = OperationRows::stream,
       .columns = {hidden()}});
}

// A norm of a branch's output keeps it.
void OperationList::join_stream(DensePart part, DensePart norm_backward, DensePart backward, const KeptOperand& output,
                                const KeptOperand& mask) {
  if (layer_.norms == 4) {
    LayerOperation& of_output = stream_norm(part);
    of_output.backward_part = norm_backward;
    keep(output);
  }
  add({.kind = OperationKind::residual,
       .part = part,
       .backward_part = backward,
       .rows = OperationRows::stream,
       .columns = {hidden()}});
  if (recipe_.dropout) keep(mask);
}

KeptTensor OperationList::elements(std::string_view name, Width columns) const {
  return {name, layer_.element_bytes * columns.all(), 0, columns.is_cut};
}

KeptTensor OperationList::product_input(std::string_view name, Width columns) const {
  const ProductFormat format = casts() ? recipe_.products : ProductFormat::elements;
  return {name, row_bytes(format, columns.all(), layer_.element_bytes), 0, columns.is_cut};
}

KeptTensor OperationList::activation_input(std::string_view name, Width columns) const {
  const std::int64_t read = layer_.gated_mlp ? 2 : 1;
  return {name, read * (recipe_.fp8_activation_input ? 1 : layer_.element_bytes) * columns.all(), 0, columns.is_cut};
}

KeptTensor OperationList::of_stream(std::string_view name, std::int64_t bytes_per_token) const {
  return {name, bytes_per_token, 0, recipe_.sequence_parallel};
}

void OperationList::keep_norm_input(std::string_view name, std::string_view stream, Recompute again) {
  const bool of_layer = again == Recompute::none;
  const bool is_eager = recipe_.splits_norms() && !layer_.biases;
  const std::int64_t of_input = is_eager ? fp32_bytes + layer_.element_bytes : layer_.element_bytes;
  KeptOperand input{of_stream(name, of_input * layer_.hidden), again, {}, of_layer};
  input.tensor.goes_whole = of_layer;
  if (recipe_.autocast() || is_eager) {
    const std::int64_t of_itself = recipe_.parameter_bytes(layer_.element_bytes) * layer_.hidden;
    KeptOperand itself{of_stream(stream, of_itself), again, {LayerModule::norm}, of_layer};
    itself.tensor.goes_whole = of_layer;
    keep(itself);
    input.again.add(LayerModule::norm);
    input.in_full = false;
  }
  keep(input);
}

LayerOperations layer_operations(const Transformer& layer, const Recipe& recipe) {
  OperationList list(layer, recipe);
  if (mixes_tokens(layer)) add_mixing_branch(list);
  if (has_mlp(layer)) add_mlp_branch(list);
  return list.take();
}

LayerOperations end_operations(const Transformer& model, const Recipe& recipe) {
  OperationList list(model, recipe);
  const Width vocabulary{.count = model.vocabulary, .is_cut = true};
  list.add({.kind = OperationKind::lookup,
            .part = DensePart::embedding,
            .backward_part = DensePart::embedding,
            .weights = {WeightShape{vocabulary, list.hidden()}},
            .vectors = model.learned_positions * model.hidden});
  list.stream_norm(DensePart::final_norm);
  for (std::int64_t i = 0; i < model.predictions; ++i) {
    LayerOperation& head = list.product(DensePart::head, {WeightShape{vocabulary, list.hidden()}});
    head.format = ProductFormat::elements;
    head.sums_bias = false;
    list.add({.kind = OperationKind::loss,
              .part = DensePart::head,
              .backward_part = DensePart::head,
              .columns = {vocabulary}});
  }
  return list.take();
}

}  // namespace hdpsim
