#include <initializer_list>
#include <optional>
#include <string_view>

#include "sim/model/impl/operation_list.h"

namespace hdpsim {
namespace {

constexpr std::string_view gate_of_mlp = "gate of the MLP";
constexpr std::string_view up_of_mlp = "what the gate multiplies";
constexpr std::string_view input_of_activation = "input of the activation";

/// An MLP of inner width `inner` on tensors of `outer` columns.
struct MlpShape {
  DensePart part;
  Width inner;
  Width outer;
  OperationRows rows = OperationRows::all;
  std::int64_t count = 1;  ///< Of experts of this shape.
  bool reads_norm = false;
  bool sums_bias = false;
  bool has_biases = false;
  // What it keeps of what its products and the activation between them read.
  std::optional<KeptOperand> input;
  KeptOperand activation_input;
  KeptOperand activation_output;
  AdapterTargets input_targets = {};  ///< The adapters that read its input ...
  AdapterTargets inner_targets = {};  ///< ... and its inner tensor.
};

// What a gated activation reads, tensor by tensor. Where the activation and the product of both are two kernels, the
// latter keeps the former's result.
void keep_both(OperationList& list, const MlpShape& shape) {
  KeptOperand one = shape.activation_input;
  one.tensor.bytes_per_token = divided(one.tensor.bytes_per_token, 2);
  for (const std::string_view name : {gate_of_mlp, up_of_mlp}) {
    one.tensor.name = name;
    list.keep(one);
  }
  if (list.recipe().layers != LayerKernels::eager) return;
  one.again.add(LayerModule::activation);
  one.tensor = list.elements("activated gate of the MLP", shape.inner);
  one.tensor.of_mlp = true;
  list.keep(one);
}

void add_products(OperationList& list, const MlpShape& shape) {
  const auto product = [&](std::initializer_list<WeightShape> weights) -> LayerOperation& {
    LayerOperation& one = list.product(shape.part, weights);
    one.rows = shape.rows;
    one.sums_bias = shape.sums_bias;
    if (!shape.has_biases) return one;
    for (const WeightShape& weight : weights) one.vectors += shape.count * weight.rows.all();
    return one;
  };
  // Gate and up are one product of twice the width, or PyTorch's two.
  const Width read{shape.inner.count, list.layer().gated_mlp ? 2 : 1, shape.inner.is_cut};
  const bool travels = shape.rows == OperationRows::copies;
  const bool are_two = list.recipe().is_pytorch() && list.layer().gated_mlp && shape.part == DensePart::mlp;
  const WeightShape gate{shape.inner, shape.outer, shape.count, 1, gate_of_mlp};
  const WeightShape up{shape.inner, shape.outer, shape.count, 1, up_of_mlp};
  LayerOperation& first =
      are_two ? product({gate, up}) : product({{read, shape.outer, shape.count, read.unit, input_of_activation}});
  first.reads_norm = shape.reads_norm;
  first.input_travels = travels;
  if (shape.input && list.keeps_input_of(shape.input_targets)) list.keep(*shape.input);
  if (!shape.input_targets.empty()) {
    list.adapt({{AdapterTarget::gate_proj, read.unit > 1 ? shape.inner : Width{}},
                {AdapterTarget::up_proj, shape.inner},
                {AdapterTarget::linear_fc1, read}},
               {LayerModule::mlp});
  }
  list.activation(shape.part, shape.inner).rows = shape.rows;
  if (are_two) {
    keep_both(list, shape);
  } else {
    list.keep(shape.activation_input);
  }
  list.activation_cast(shape.part, shape.inner, shape.rows);
  product({{shape.outer, shape.inner, shape.count, 1, "output of the MLP"}}).output_travels = travels;
  if (list.keeps_input_of(shape.inner_targets)) list.keep(shape.activation_output);
  if (shape.inner_targets.empty()) return;
  list.adapt({{AdapterTarget::down_proj, shape.outer}}, {LayerModule::mlp});
}

KeptOperand of_mlp(KeptTensor tensor, Recompute again) {
  tensor.of_mlp = true;
  return {tensor, again};
}

// The input of the MLP or of the experts, unless attention keeps the same. A router reads elements.
std::optional<KeptOperand> kept_input(const OperationList& list) {
  if (list.shares_norm()) return std::nullopt;
  const Width hidden = list.hidden();
  const KeptTensor input = list.layer().moe ? list.elements("", hidden) : list.product_input("", hidden);
  return of_mlp(list.of_stream("input of the MLP", input.bytes_per_token), {LayerModule::norm});
}

void add_dense_mlp(OperationList& list) {
  const Transformer& layer = list.layer();
  const Width inner{.count = layer.ffn_hidden, .is_cut = true};
  add_products(list, {.part = DensePart::mlp,
                      .inner = inner,
                      .outer = list.hidden(),
                      .reads_norm = true,
                      .sums_bias = layer.biases,
                      .has_biases = layer.biases,
                      .input = kept_input(list),
                      .activation_input = of_mlp(list.activation_input(input_of_activation, inner), {LayerModule::mlp}),
                      .activation_output = of_mlp(list.product_input("output of the activation", inner),
                                                  {LayerModule::mlp, LayerModule::activation}),
                      .input_targets = mlp_input_targets,
                      .inner_targets = {AdapterTarget::down_proj}});
}

void add_shared_experts(OperationList& list) {
  const Width inner{.count = list.layer().moe->shared_hidden, .is_cut = true};
  if (inner.count == 0) return;
  std::optional<KeptOperand> input;
  if (list.casts()) {
    const std::int64_t bytes = list.product_input("", list.hidden()).bytes_per_token;
    input = of_mlp(list.of_stream("fp8 input of the shared experts", bytes), {LayerModule::experts});
  }
  add_products(list,
               {.part = DensePart::shared_experts,
                .inner = inner,
                .outer = list.hidden(),
                .input = input,
                .activation_input = of_mlp(list.activation_input("input of the shared experts' activation", inner),
                                           {LayerModule::experts}),
                .activation_output = of_mlp(list.product_input("output of the shared experts' activation", inner),
                                            {LayerModule::experts, LayerModule::activation})});
}

// What PyTorch's kernels for the choice of experts and for the balancing loss do more than one that is fused. Forward
// the choice has a top-k, two tensors of zeros with what is scattered to them and three casts; the loss another
// softmax, top-k, zeros and scatter, three sums, two products, and three kernels that record it. Backward has a gather,
// zeros, casts, a scatter, the products and the softmax of the loss, and the sum of both gradients (Megatron-Core 0.12,
// topk_routing_with_score_function, compute_routing_scores_for_aux_loss, switch_load_balancing_loss_func and
// save_to_aux_losses_tracker). About eight of them pass over all probabilities.
void unfused_router(OperationList& list, const std::array<Width, 3>& experts) {
  const auto add = [&](std::int64_t forward, std::int64_t backward, std::int64_t kernels) {
    LayerOperation& pass = list.pass(DensePart::router, experts, forward, backward);
    pass.rows = OperationRows::stream;
    pass.number_bytes = fp32_bytes;
    pass.kernels = kernels;
  };
  add(8, 0, 19);
  add(0, 8, 9);
}

// Its product, softmax and choice of the top k: forward reads logits and writes probabilities, backward reads and
// writes their gradients. The gate of shared experts is neglected.
void add_router(OperationList& list) {
  const MixtureOfExperts& moe = *list.layer().moe;
  const Width experts{.count = moe.experts};
  LayerOperation& product = list.product(DensePart::router, {{experts, list.hidden()}});
  product.rows = OperationRows::stream;
  product.vectors = moe.biases ? moe.experts : 0;
  product.format = ProductFormat::elements;
  product.sum_bytes = 0;
  product.sums_bias = false;
  if (const auto input = kept_input(list); input && list.keeps_input_of({})) list.keep(*input);
  LayerOperation& softmax = list.pass(DensePart::router, {experts}, 2, 2);
  softmax.rows = OperationRows::stream;
  softmax.number_bytes = fp32_bytes;
  if (!list.recipe().router_fusion) unfused_router(list, {experts});
  list.keep(of_mlp(list.of_stream("probabilities of the router", fp32_bytes * moe.experts), {LayerModule::experts}));
  if (moe.shared_gate) list.product(DensePart::router, {{{.count = 1}, list.hidden()}}).is_counted = false;
}

// To the latent that copies have, or from the sum of a token's copies back.
void latent_product(OperationList& list, DensePart part, const WeightShape& weight) {
  LayerOperation& product = list.product(part, {weight});
  product.rows = OperationRows::stream;
  product.sums_bias = false;
}

// The permutation of copies into the order of their experts, or the sum of the copies of each token: both read or write
// each token once and each copy once, and each is the other's backward.
void permutation(OperationList& list, DensePart part) {
  const MixtureOfExperts& moe = *list.layer().moe;
  list.pass(part, {Width{.count = (1 + moe.experts_per_token) * copy_width(list.layer())}}, 1, 1);
}

// The biases of the last product of experts, by which Transformer Engine's does not add them: expert by expert their
// product with the probabilities of the copies and the sum, and at last all experts in one tensor; backward the
// products and sums for the gradients of both, and one tensor of what was split (Megatron-Core, TEGroupedMLP,
// _apply_bias).
void added_biases(OperationList& list, Width copy) {
  const auto add = [&](std::int64_t forward, std::int64_t backward, std::int64_t kernels, bool by_expert) {
    LayerOperation& pass = list.pass(DensePart::experts, {copy}, forward, backward);
    pass.rows = OperationRows::copies;
    pass.kernels = kernels;
    pass.by_expert = by_expert;
  };
  add(4, 0, 2, true);
  add(0, 6, 4, true);
  add(2, 2, 1, false);
}

// Those among which the router chooses. Without expert groups every device of the tensor-parallel group has all copies
// and cuts the experts' inner width. The probabilities weight the output of the activation, so that nothing is kept
// behind the last product.
void add_routed_experts(OperationList& list) {
  const MixtureOfExperts& moe = *list.layer().moe;
  const Width copy{.count = copy_width(list.layer())};
  const Width inner{.count = moe.expert_hidden, .is_cut = true};
  const Width of_token{.count = moe.experts_per_token * moe.expert_hidden, .is_cut = true};
  const auto keep = [](KeptTensor tensor, Recompute again) {
    tensor.of_experts = true;
    return of_mlp(tensor, again);
  };
  KeptTensor copies = list.product_input("copies for the experts", copy);
  copies.bytes_per_token *= moe.experts_per_token;
  add_products(list, {.part = DensePart::experts,
                      .inner = inner,
                      .outer = copy,
                      .rows = OperationRows::copies,
                      .count = moe.experts,
                      .has_biases = moe.biases,
                      .input = keep(copies, {LayerModule::experts}),
                      .activation_input = keep(list.activation_input("input of the experts' activation", of_token),
                                               {LayerModule::experts}),
                      .activation_output = keep(list.product_input("output of the experts' activation", of_token),
                                                {LayerModule::experts, LayerModule::activation})});
  if (moe.biases && !list.recipe().is_pytorch()) added_biases(list, copy);
  // The copies that come from the devices of a group are put in the order of the experts, and padded, and back
  // afterwards: two kernels each, which read and write them.
  for (bool LayerOperation::*only : {&LayerOperation::only_sorted, &LayerOperation::only_padded}) {
    LayerOperation& copied = list.pass(DensePart::experts, {copy}, 4, 4);
    copied.rows = OperationRows::copies;
    copied.kernels = 2;
    copied.*only = true;
  }
}

}  // namespace

void add_experts(OperationList& list) {
  const MixtureOfExperts& moe = *list.layer().moe;
  const Width latent{.count = moe.latent};
  add_shared_experts(list);
  add_router(list);
  if (moe.latent > 0) latent_product(list, DensePart::to_latent, {latent, list.hidden()});
  permutation(list, DensePart::copies);
  list.pass(DensePart::sent_cast, {Width{.count = copy_width(list.layer())}}, 1, 1).number_bytes =
      list.layer().element_bytes + 1;
  add_routed_experts(list);
  permutation(list, DensePart::sum_of_copies);
  if (moe.latent == 0) return;
  const KeptTensor sums = list.of_stream("sums of copies in their latent", list.elements("", latent).bytes_per_token);
  latent_product(list, DensePart::from_latent, {list.hidden(), latent});
  list.keep(of_mlp(sums, {LayerModule::experts}));
}

void add_mlp_branch(OperationList& list) {
  if (!list.shares_norm()) {
    list.stream_norm(DensePart::mlp_norm);
    mixes_tokens(list.layer())
        ? list.keep_norm_input("input of the MLP's norm", "residual stream before the MLP", {LayerModule::projection})
        : list.keep_norm_input("input of the layer", "residual stream before the layer", Recompute::none);
  }
  list.fork(DensePart::mlp_norm);
  list.layer().moe ? add_experts(list) : add_dense_mlp(list);
  const std::int64_t hidden = list.layer().hidden;
  // Experts are several steps of the lowering: what precedes them in backward runs with the norm.
  const DensePart first = list.layer().moe ? DensePart::mlp_norm : DensePart::mlp;
  list.join_stream(DensePart::mlp_residual, first, first,
                   {list.of_stream("output of the MLP", list.layer().element_bytes * hidden), {}},
                   {list.of_stream("dropout mask behind the MLP", mask_bytes * hidden), {}});
}

}  // namespace hdpsim
