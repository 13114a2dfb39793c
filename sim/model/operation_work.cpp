#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/model/layer_operations.h"
#include "sim/model/mixing.h"
#include "sim/model/number_type.h"
#include "sim/model/product_format.h"

namespace hdpsim {
namespace {

// Products or kinds of kernels of consecutive work, for which memory is taken at once.
constexpr std::size_t usual_products = 8;

/// Adds up the work of operations in one direction, by the rules of their kinds. In fp8 a product reads its input, and
/// in backward the gradient of its output, by rows and another by columns: a kernel casts elements to both, or what
/// came in fp8 to the other one.
class OperationWork {
 public:
  /// `layer` and `rows` must outlive it.
  OperationWork(const LayerOperations& layer, const DeviceRows& rows, Direction direction, Gradients gradients);

  void add(DensePart part);
  [[nodiscard]] LinearPart take() { return std::move(work_); }

 private:
  void add_work(DensePart part);
  void add(const LayerOperation& operation);
  void add_activation(DensePart part);
  void add_inner();
  void product(const LayerOperation& of);
  void multiply(const Gemm& forward, const LayerOperation& of);
  void dequantize(const LayerOperation& of, std::int64_t elements);
  void cast_input(const LayerOperation& of, std::int64_t elements);
  void weight_gradient(std::int64_t elements);
  void cast_weight(std::int64_t elements);
  void norm(const LayerOperation& of);
  void activation(const LayerOperation& of);
  void fork(const LayerOperation& of);
  void residual(const LayerOperation& of);
  void mixing(const LayerOperation& of);
  void lookup(const LayerOperation& of);
  void loss(const LayerOperation& of);
  void pass(const LayerOperation& of);

  /// Elements of the tensor that a memory-bound kernel passes over.
  [[nodiscard]] std::int64_t elements(const LayerOperation& of) const;
  [[nodiscard]] std::int64_t rows(const LayerOperation& of) const;
  /// Bytes of an element of the residual stream.
  [[nodiscard]] std::int64_t stream() const { return recipe_.parameter_bytes(element_bytes()); }
  [[nodiscard]] std::int64_t element_bytes() const { return operations_.element_bytes; }
  [[nodiscard]] bool is_forward() const { return work_.direction == Direction::forward; }
  [[nodiscard]] bool computes(Gradients which) const {
    return work_.gradients == Gradients::all || work_.gradients == which;
  }
  /// A kernel that reads and writes so many bytes in all.
  void kernel(std::int64_t bytes, MemoryKernel kind = MemoryKernel::other, std::int64_t kernels = 1);
  /// A cast between fp32 and an element, in either direction.
  void cast_fp32(std::int64_t count) { kernel(count * (fp32_bytes + element_bytes())); }
  /// Backward multiplies a gradient of so many bytes an element by the mask.
  void drop_gradient(std::int64_t count, std::int64_t bytes) { kernel(count * (2 * bytes + mask_bytes)); }
  /// Reads a weight's gradient, and reads and writes its sum over micro-batches, of `sum` bytes an element; 0: no
  /// kernel does.
  void add_up(std::int64_t count, std::int64_t sum);

  const LayerOperations& operations_;
  const Recipe& recipe_;
  const DeviceRows& rows_;
  std::int64_t copies_;
  /// The gradients with which memory-bound kernels of the operation run.
  Gradients with_kernels_ = Gradients::inputs;
  LinearPart work_;
};

OperationWork::OperationWork(const LayerOperations& layer, const DeviceRows& rows, Direction direction,
                             Gradients gradients)
    : operations_(layer),
      recipe_(layer.recipe),
      rows_(rows),
      copies_(std::accumulate(rows.copies.begin(), rows.copies.end(), std::int64_t{0})),
      work_{.gemms = {}, .memory_bound = {}, .parts = {}, .direction = direction, .gradients = gradients} {
  work_.gemms.reserve(usual_products);
  work_.memory_bound.reserve(usual_products);
}

// The module of a layer to which a part belongs; empty for the ends of a model.
std::optional<GraphModule> module_of(DensePart part, bool has_experts) {
  switch (part) {
    case DensePart::attention_norm:
    case DensePart::qkv:
    case DensePart::mixing:
    case DensePart::attention_output:
    case DensePart::attention_residual:
      return GraphModule::attention;
    case DensePart::mlp_norm:
    case DensePart::mlp_residual:
      return has_experts ? GraphModule::router : GraphModule::mlp;
    case DensePart::mlp:
    case DensePart::mlp_inner:
    case DensePart::mlp_activation:
      return GraphModule::mlp;
    case DensePart::router:
      return GraphModule::router;
    case DensePart::shared_experts:
    case DensePart::to_latent:
    case DensePart::copies:
    case DensePart::sent_cast:
    case DensePart::experts:
    case DensePart::expert_activation:
    case DensePart::sum_of_copies:
    case DensePart::from_latent:
      return GraphModule::experts;
    case DensePart::embedding:
    case DensePart::final_norm:
    case DensePart::head:
      break;
  }
  return std::nullopt;
}

// The part at which the host issues the graph of its module.
bool starts_graph(DensePart part) {
  return part == DensePart::qkv || part == DensePart::mlp || part == DensePart::router || part == DensePart::experts;
}

void OperationWork::add(DensePart part) {
  work_.parts.push_back(part);
  const std::int64_t issued = work_.issued();
  add_work(part);
  const auto module = module_of(part, operations_.layer.moe.has_value());
  if (!module || !recipe_.graphs.has(*module)) return;
  work_.not_issued += work_.issued() - issued - (starts_graph(part) ? 1 : 0);
}

void OperationWork::add_work(DensePart part) {
  if (part == DensePart::mlp_inner) return add_inner();
  if (part == DensePart::mlp_activation || part == DensePart::expert_activation) return add_activation(part);
  if (is_forward()) {
    for (const LayerOperation& operation : operations_.list) {
      if (operation.part == part) add(operation);
    }
    return;
  }
  std::for_each(operations_.list.rbegin(), operations_.list.rend(), [&](const LayerOperation& operation) {
    if (operation.backward_part == part) add(operation);
  });
}

// Of the MLP up to its last product.
void OperationWork::add_inner() {
  HDPSIM_CHECK(is_forward(), "backward of a part of an MLP");
  bool is_behind = false;
  for (const LayerOperation& operation : operations_.list) {
    if (operation.part != DensePart::mlp) continue;
    if (is_behind && operation.kind == OperationKind::product) return;
    add(operation);
    is_behind = is_behind || operation.kind == OperationKind::activation;
  }
}

void OperationWork::add_activation(DensePart part) {
  HDPSIM_CHECK(is_forward(), "backward of a part of an MLP");
  const bool of_experts = part == DensePart::expert_activation;
  for (const LayerOperation& operation : operations_.list) {
    if (operation.kind == OperationKind::activation && operation.is_of_experts() == of_experts) add(operation);
  }
}

void OperationWork::add(const LayerOperation& operation) {
  if (operation.is_of_experts() && copies_ == 0) return;
  with_kernels_ = operation.kind == OperationKind::lookup ? Gradients::weights : Gradients::inputs;
  switch (operation.kind) {
    case OperationKind::product:
      return operation.is_counted ? product(operation) : void();
    case OperationKind::norm:
      return norm(operation);
    case OperationKind::pass:
      return pass(operation);
    case OperationKind::activation:
      return activation(operation);
    case OperationKind::fork:
      return fork(operation);
    case OperationKind::residual:
      return residual(operation);
    case OperationKind::attention:
      return;
    case OperationKind::mixing:
      return mixing(operation);
    case OperationKind::lookup:
      return lookup(operation);
    case OperationKind::loss:
      return loss(operation);
  }
}

void OperationWork::product(const LayerOperation& of) {
  std::int64_t n = 0;
  for (const WeightShape& weight : of.weights) n += weight.rows.on(rows_.tp);
  const std::int64_t k = of.weights.front().columns.on(rows_.tp);
  cast_input(of, rows(of) * (is_forward() ? k : n));
  if (recipe_.autocast()) cast_weight(n * k);
  if (recipe_.lora.dequantizes() && !of.is_adapter && of.part != DensePart::head) dequantize(of, n * k);
  // The gradient of a bias is the sum of the output's gradient over all tokens, which is read once more for it. In fp8
  // the cast of that gradient adds it up (Transformer Engine, cast_transpose_dbias).
  if (!is_forward() && of.is_trained && !is_narrow(of.format) && of.sums_bias) kernel(rows(of) * n * element_bytes());
  const auto multiply_rows = [&](std::int64_t m) { multiply({m, n, k, of.format}, of); };
  if (!of.is_of_experts()) {
    multiply_rows(rows(of));
  } else {
    std::for_each(rows_.copies.begin(), rows_.copies.end(), multiply_rows);
  }
  if (!is_forward() && of.is_trained) weight_gradient(n * k);
}

// Backward has the product for the gradient of the input (m x n times n x k) and of the weight (k x m times m x n).
void OperationWork::multiply(const Gemm& forward, const LayerOperation& of) {
  const auto& [m, n, k, format, no_sum] = forward;
  std::vector<Gemm>& products = work_.gemms;
  if (m == 0) return;
  if (is_forward()) return products.push_back(forward);
  if (computes(Gradients::inputs)) {
    work_.last_of_inputs = products.size();
    products.push_back({m, k, n, format});
  }
  if (of.is_trained && computes(Gradients::weights)) {
    work_.last_of_weights = products.size();
    products.push_back({k, n, m, format, of.sum_bytes});
  }
}

// A kernel for each weight reads its few bits with their scales and writes elements.
void OperationWork::dequantize(const LayerOperation& of, std::int64_t elements) {
  std::int64_t weights = 0;
  for (const WeightShape& weight : of.weights) weights += weight.parameters() > 0 ? weight.blocks : 0;
  const std::int64_t times = of.is_of_experts() ? std::ssize(rows_.copies) : 1;
  const std::int64_t bytes = bytes_of(recipe_.lora.base, elements) + elements * element_bytes();
  kernel(times * bytes, MemoryKernel::other, times * weights);
}

// A kernel casts the product's input, or its output's gradient, unless a norm has done so.
void OperationWork::cast_input(const LayerOperation& of, std::int64_t elements) {
  if (!is_narrow(of.format)) return;
  const bool travels = is_forward() ? of.input_travels : of.output_travels;
  if (travels && rows_.fp8_sent) return kernel(transpose_bytes(of.format, elements));
  const CastOf what = is_forward() && of.reads_norm ? CastOf::norm : CastOf::other;
  const std::int64_t bytes = cast_bytes(of.format, elements, element_bytes(), what);
  if (bytes > 0) kernel(bytes);
}

// Besides its product: where a kernel adds it up; and the copy of the gradient from the product or, under autocast, the
// cast to fp32, and its division before ranks sum it.
void OperationWork::weight_gradient(std::int64_t elements) {
  add_up(elements, recipe_.added_bytes());
  if (recipe_.flat_gradients()) kernel(elements * 2 * (stream() + element_bytes()), MemoryKernel::other, 2);
}

// Backward reads the cast that forward made of the weight, and casts its gradient to fp32; where a reduction of
// elements follows, back, too.
void OperationWork::cast_weight(std::int64_t elements) {
  cast_fp32(elements);
  if (!is_forward() && recipe_.reduces_in_pass()) cast_fp32(elements);
}

void OperationWork::add_up(std::int64_t count, std::int64_t sum) {
  if (sum > 0) kernel(count * (stream() + 2 * sum));
}

// Forward reads the input and writes the output; backward reads gradient and input and writes a gradient. Norms of the
// residual stream cast what they read from it and the gradient that they write for it.
void OperationWork::norm(const LayerOperation& of) {
  const std::int64_t count = elements(of);
  is_forward() ? kernel(2 * count * element_bytes(), MemoryKernel::rms_norm_forward)
               : kernel(3 * count * element_bytes(), MemoryKernel::rms_norm_backward);
  if (of.on_stream && recipe_.autocast()) cast_fp32(count);
}

void OperationWork::pass(const LayerOperation& of) {
  if (of.only_sorted && !(rows_.sorted && rows_.copies.size() > 1)) return;
  const std::int64_t times = is_forward() ? of.forward : of.backward;
  if (times > 0) kernel(times * elements(of) * of.number_bytes, of.kernel, of.kernels);
}

// Forward reads gate and up (or up alone) and writes one tensor; backward reads the same and the gradient, and writes
// as many gradients.
void OperationWork::activation(const LayerOperation& of) {
  const std::int64_t read = operations_.layer.gated_mlp ? 2 : 1;
  is_forward() ? kernel((read + 1) * elements(of) * element_bytes(), MemoryKernel::swiglu_forward)
               : kernel((2 * read + 1) * elements(of) * element_bytes(), MemoryKernel::swiglu_backward);
}

void OperationWork::fork(const LayerOperation& of) {
  if (!is_forward()) kernel(elements(of) * 3 * stream(), MemoryKernel::add);
}

// It reads a branch's output and the stream and writes the stream. The same kernel drops and writes the mask
// (Megatron-LM, fused_bias_dropout.py). The products of the branch read the stream's gradient as elements.
void OperationWork::residual(const LayerOperation& of) {
  const std::int64_t count = elements(of);
  if (is_forward()) {
    const std::int64_t mask = recipe_.dropout ? mask_bytes : 0;
    return kernel(count * (2 * stream() + element_bytes() + mask), MemoryKernel::add);
  }
  if (recipe_.autocast()) cast_fp32(count);
  if (recipe_.dropout) drop_gradient(count, element_bytes());
}

// It has no weights: both products of backward are for gradients of what it reads.
void OperationWork::mixing(const LayerOperation& of) {
  for (const Gemm& forward : mixing_products(*operations_.layer.linear, rows(of), rows_.tp)) {
    if (is_forward()) {
      work_.gemms.push_back(forward);
    } else if (computes(Gradients::inputs)) {
      work_.gemms.push_back({forward.m, forward.k, forward.n});
      work_.gemms.push_back({forward.k, forward.n, forward.m});
      work_.last_of_inputs = work_.gemms.size() - 1;
    }
  }
  if (of.forward > 0) pass(of);
}

// A device owns 1 / tp of the looked-up rows and writes zeros for the others, which a reduce-scatter then sums.
// Backward reads the rows' gradients and adds them to fp32 sums, which are read and written. Where no product adds
// gradients up, or a buffer has the sums, the table's gradient is dense: zeros to which rows are added, and which a
// kernel then adds to the sums in every micro-batch (PyTorch, embedding_dense_backward; Megatron-Core 0.8,
// distributed_data_parallel.py, param_hook: main_grad.add_).
void OperationWork::lookup(const LayerOperation& of) {
  const std::int64_t hidden = of.weights.front().columns.all();
  const std::int64_t own = divided(rows_.all, rows_.tp) * hidden;
  if (!is_forward() && recipe_.lora.is_on()) return;  // nothing before the first layer is trained
  if (is_forward()) {
    kernel((own + rows_.all * hidden) * stream(), MemoryKernel::embedding_forward);
    if (recipe_.dropout) drop_gradient(rows_.stream * hidden, stream());
    return;
  }
  if (recipe_.dropout) drop_gradient(rows_.stream * hidden, stream());
  const std::int64_t sums = recipe_.has_gradient_buffer() ? recipe_.gradient_bytes : recipe_.added_bytes();
  kernel(own * (stream() + 2 * (sums > 0 ? element_bytes() : fp32_bytes)));
  const std::int64_t table = of.weights.front().rows.on(rows_.tp) * hidden;
  if (sums > 0) kernel(table * element_bytes());
  add_up(table, sums);
}

// The fused cross-entropy reads the logits once and keeps two numbers per token; backward turns them into their
// gradient in place.
void OperationWork::loss(const LayerOperation& of) {
  const std::int64_t logits = elements(of);
  if (!recipe_.fp32_loss()) {
    return kernel((is_forward() ? 1 : 2) * logits * element_bytes(), MemoryKernel::cross_entropy);
  }
  kernel(logits * (fp32_bytes + element_bytes()), MemoryKernel::fp32_loss);  // copy of the logits, or back
  // Maximum and sum read; difference, exponential and quotient, or the multiplication in backward, read and write.
  const std::int64_t passes = is_forward() ? 2 + 3 * 2 : 2;
  kernel(passes * fp32_bytes * logits, MemoryKernel::fp32_loss, is_forward() ? 5 : 1);
}

std::int64_t OperationWork::rows(const LayerOperation& of) const {
  if (of.is_of_experts()) return copies_;
  return of.rows == OperationRows::stream ? rows_.stream : rows_.all;
}

std::int64_t OperationWork::elements(const LayerOperation& of) const {
  std::int64_t columns = 0;
  for (const Width& each : of.columns) columns += each.on(rows_.tp);
  return rows(of) * columns;
}

void OperationWork::kernel(std::int64_t bytes, MemoryKernel kind, std::int64_t kernels) {
  if (is_forward() || computes(with_kernels_)) work_.add({Bytes(bytes), kernels, kind});
}

}  // namespace

DeviceRows device_rows(std::int64_t tokens, std::int64_t tp, const Recipe& recipe) {
  return {.tp = tp, .all = tokens, .stream = recipe.sequence_parallel ? divided(tokens, tp) : tokens};
}

LinearPart work_of(const LayerOperations& layer, const DeviceRows& rows, const std::vector<DensePart>& parts,
                   Direction direction, Gradients gradients) {
  OperationWork work(layer, rows, direction, gradients);
  for (const DensePart part : parts) work.add(part);
  return work.take();
}

}  // namespace hdpsim
