#include "sim/model/impl/operation_work.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "sim/base/check.h"
#include "sim/model/dtensor.h"
#include "sim/model/mixing.h"
#include "sim/model/number_type.h"

namespace hdpsim {

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

namespace {

// The module of a layer to which a part belongs; empty for the ends of a model.
std::optional<GraphModule> module_of(DensePart part, bool has_experts) {
  switch (part) {
    case DensePart::attention_norm:
    case DensePart::qkv:
    case DensePart::mixing:
    case DensePart::attention_output:
    case DensePart::attention_residual:
    case DensePart::qkv_again:
    case DensePart::attention_output_again:
      return GraphModule::attention;
    case DensePart::mlp_norm:
    case DensePart::mlp_residual:
      return has_experts ? GraphModule::router : GraphModule::mlp;
    case DensePart::mlp:
    case DensePart::mlp_inner:
    case DensePart::mlp_activation:
    case DensePart::mlp_again:
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

}  // namespace

void OperationWork::add(DensePart part) {
  work_.parts.push_back(part);
  const HostCalls before = work_.host_calls();
  add_work(part);
  const auto module = module_of(part, operations_.layer.moe.has_value());
  if (!module || !recipe_.graphs.has(*module)) return;
  const HostCalls after = work_.host_calls();
  work_.not_issued += after.kernels + after.in_loops - before.kernels - before.in_loops - (starts_graph(part) ? 1 : 0);
  work_.in_loops = before.in_loops;
  work_.narrow = before.narrow;
}

void OperationWork::add_work(DensePart part) {
  if (part >= DensePart::qkv_again) return add_again(part);
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

void OperationWork::add_again(DensePart part) {
  HDPSIM_CHECK(is_forward(), "backward of what is computed again");
  is_again_ = true;
  if (part == DensePart::mlp_again) {
    add_inner();
  } else {
    add(part == DensePart::qkv_again ? DensePart::qkv : DensePart::attention_output);
    work_.parts.pop_back();
  }
  is_again_ = false;
}

// Of the MLP up to its last product.
void OperationWork::add_inner() {
  HDPSIM_CHECK(is_forward(), "backward of a part of an MLP");
  is_of_backward_ = true;
  bool is_behind = false;
  for (const LayerOperation& operation : operations_.list) {
    if (operation.part != DensePart::mlp) continue;
    if (is_behind && operation.kind == OperationKind::product) break;
    add(operation);
    is_behind = is_behind || operation.kind == OperationKind::activation;
  }
  is_of_backward_ = false;
}

void OperationWork::add_activation(DensePart part) {
  HDPSIM_CHECK(is_forward(), "backward of a part of an MLP");
  is_of_backward_ = true;
  const bool of_experts = part == DensePart::expert_activation;
  for (const LayerOperation& operation : operations_.list) {
    if (operation.kind == OperationKind::activation && operation.is_of_experts() == of_experts) add(operation);
  }
  is_of_backward_ = false;
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

// Norms of the residual stream cast what they read from it and the gradient that they write for it.
void OperationWork::norm(const LayerOperation& of) {
  const std::int64_t count = elements(of);
  const ElementwiseKernels& all = recipe_.elementwise();
  const BothPasses& of_rms = recipe_.splits_norms() ? all.norm : all.layer_norm;
  kernel(passes_of(operations_.layer.biases ? all.layer_norm : of_rms), count,
         is_forward() ? MemoryKernel::rms_norm_forward : MemoryKernel::rms_norm_backward);
  if (of.on_stream && recipe_.autocast()) cast_fp32(count);
}

void OperationWork::pass(const LayerOperation& of) {
  if ((of.only_sorted && !rows_.sorted) || (of.only_padded && !rows_.padded)) return;
  const std::int64_t times = is_forward() ? of.forward : of.backward;
  if (times == 0) return;
  const std::int64_t loops = of.by_expert ? std::ssize(rows_.copies) : 1;
  kernel(times * elements(of) * of.number_bytes, of.kernel, of.kernels * loops);
  if (is_forward() || computes(with_kernels_)) work_.in_loops += of.kernels * (loops - 1);
}

void OperationWork::activation(const LayerOperation& of) {
  if (!recipe_.activation_fusion) return unfused_activation(of);
  const ElementwiseKernels& all = recipe_.elementwise();
  if (is_of_backward_ && all.again_with_backward) return kernel({1, 0, 0}, elements(of), MemoryKernel::swiglu_backward);
  kernel(passes_of(operations_.layer.gated_mlp ? all.gated : all.activation), elements(of),
         is_forward() ? MemoryKernel::swiglu_forward : MemoryKernel::swiglu_backward);
}

// Kernels of PyTorch that read and write tensors of the inner width: the function itself, with a gate also the product
// with it, whose halves backward puts side by side; of experts also the product with the router's probabilities, in
// fp32, and its cast. Backward of that product has the gradients of both factors and the sum of the probabilities'.
void OperationWork::unfused_activation(const LayerOperation& of) {
  const std::int64_t inner = elements(of);
  const bool gated = operations_.layer.gated_mlp;
  const std::int64_t passes = is_forward() ? (gated ? 5 : 2) : (gated ? 13 : 3);
  kernel(passes * inner * element_bytes(), MemoryKernel::other, is_forward() ? (gated ? 2 : 1) : (gated ? 4 : 1));
  if (!of.is_of_experts()) return;
  cast_fp32(inner);
  if (is_forward()) return kernel(inner * (element_bytes() + fp32_bytes));
  kernel(inner * 2 * fp32_bytes);                      // the gradient times the probabilities ...
  cast_fp32(inner);                                    // ... as elements
  kernel(inner * (element_bytes() + 2 * fp32_bytes));  // and times the activation,
  kernel(inner * fp32_bytes);                          // which is summed over the columns
}

void OperationWork::fork(const LayerOperation& of) {
  const Passes& passes = recipe_.elementwise().fork;
  if (!is_forward()) kernel(passes.bytes(elements(of), stream()), MemoryKernel::add, passes.kernels);
}

// It reads a branch's output and the stream and writes the stream. The same kernel drops and writes the mask
// (Megatron-LM, fused_bias_dropout.py). The products of the branch read the stream's gradient as elements.
void OperationWork::residual(const LayerOperation& of) {
  const std::int64_t count = elements(of);
  if (is_forward()) {
    const std::int64_t mask = recipe_.dropout ? mask_bytes : 0;
    const bool joins_norm = of.part == DensePart::attention_residual;
    const Passes& passes = joins_norm ? recipe_.elementwise().residual : elementwise_kernels.front().residual;
    return kernel(count * ((passes.elements - 1) * stream() + element_bytes() + mask), MemoryKernel::add,
                  passes.kernels);
  }
  if (recipe_.autocast()) cast_fp32(count);
  if (recipe_.dropout) drop_gradient(count, element_bytes());
}

// It has no weights: both products of backward are for gradients of what it reads.
void OperationWork::mixing(const LayerOperation& of) {
  if (!is_forward() && computes(Gradients::inputs)) {
    for (const Gemm& again : products_again(*operations_.layer.linear, rows(of), rows_.tp)) {
      work_.gemms.push_back(again);
    }
  }
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
    if (recipe_.copies_shards()) copy_shards(of.weights.front().rows.on(rows_.tp) * hidden);
    return;
  }
  if (recipe_.dropout) drop_gradient(rows_.stream * hidden, stream());
  const std::int64_t sums = recipe_.has_gradient_buffer() ? recipe_.gradient_bytes : recipe_.added_bytes();
  kernel(own * (stream() + 2 * (sums > 0 ? element_bytes() : fp32_bytes)));
  const std::int64_t table = of.weights.front().rows.on(rows_.tp) * hidden;
  if (sums > 0) kernel(table * element_bytes());
  add_up(table, sums);
}

void OperationWork::loss(const LayerOperation& of) {
  const LossForm& form = loss_form(recipe_, rows_.tp);
  const Passes& passes = is_forward() ? form.forward : form.backward;
  const bool is_fp32 = passes.fp32 > 0;
  kernel(passes.bytes(elements(of), element_bytes()), is_fp32 ? MemoryKernel::fp32_loss : MemoryKernel::cross_entropy,
         passes.kernels * chunks_of(of));
  if (!is_forward()) sum_chunks(of);
}

// Each chunk has a gradient of the head's weight; and the product that makes its logits again, if backward does so.
void OperationWork::sum_chunks(const LayerOperation& of) {
  const LossForm& form = form_of(recipe_.loss);
  const std::int64_t vocabulary = of.columns.front().on(rows_.tp);
  const std::int64_t chunks = chunks_of(of);
  if (form.sums > 0 && chunks > 1) {
    kernel((chunks - 1) * form.sums * vocabulary * head_inputs() * element_bytes(), MemoryKernel::add, chunks - 1);
  }
  if (form.multiplies_again && rows(of) > 0 && computes(Gradients::inputs)) {
    work_.gemms.push_back({rows(of), vocabulary, head_inputs()});
  }
}

std::int64_t OperationWork::chunks_of(const LayerOperation& loss) const {
  const std::int64_t vocabulary = loss.columns.front().on(rows_.tp);
  const std::int64_t chunk = loss_tokens(form_of(recipe_.loss).tokens, rows(loss), vocabulary, head_inputs());
  return chunk > 0 ? divided(rows(loss), chunk) : 1;
}

std::int64_t OperationWork::head_inputs() const {
  const auto head = std::find_if(operations_.list.begin(), operations_.list.end(), [](const LayerOperation& operation) {
    return operation.kind == OperationKind::product && operation.part == DensePart::head;
  });
  HDPSIM_CHECK(head != operations_.list.end(), "a loss without a head");
  return head->weights.front().columns.all();
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
