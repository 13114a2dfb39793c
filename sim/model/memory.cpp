#include "sim/model/memory.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"
#include "sim/model/dtensor.h"
#include "sim/model/impl/state_bytes.h"
#include "sim/model/layer_operations.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/model/parameters.h"
#include "sim/model/shares.h"
#include "sim/model/sharing_form.h"
#include "sim/model/work.h"

namespace hdpsim {
namespace {

constexpr Bytes cuda_context(std::int64_t{426} << 20);
constexpr Bytes communicator(std::int64_t{688} << 20);

// The tensors of a layer that backward recomputes.
std::vector<KeptTensor> computed_again(const Transformer& model, Recipe recipe, const ExpertUse& experts) {
  const std::vector<KeptTensor> kept = kept_tensors(model, recipe, experts);
  recipe.recompute = Recompute::none;
  std::vector<KeptTensor> again = kept_tensors(model, recipe, experts);
  std::erase_if(again, [&](const KeptTensor& tensor) {
    return std::any_of(kept.begin(), kept.end(), [&](const KeptTensor& other) { return other.name == tensor.name; });
  });
  return again;
}

std::vector<KeptTensor> with_mlp(std::vector<KeptTensor> tensors, bool of_mlp) {
  std::erase_if(tensors, [&](const KeptTensor& tensor) { return tensor.of_mlp != of_mlp; });
  return tensors;
}

}  // namespace

std::string_view memory_part_name(MemoryPart part) {
  constexpr std::array<std::string_view, memory_parts> names = {"parameters",    "gradients",     "optimizer",
                                                                "activations",   "head",          "workspace",
                                                                "communication", "fragmentation", "reserve"};
  return names.at(static_cast<std::size_t>(part));
}

Bytes MemoryParts::total() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), Bytes{});
}

Bytes MemoryParts::allocated() const {
  return total() - (*this)[MemoryPart::fragmentation] - (*this)[MemoryPart::reserve];
}

Bytes default_reserve(std::int64_t tp, std::int64_t pp, std::int64_t pool) {
  const std::int64_t communicators = (tp > 1) + (pp > 1) + (pool > 1);
  return cuda_context + communicator * communicators;
}

DeviceShape whole_shape(const Transformer& model, DeviceShape shape) {
  shape.layers = layer_runs(model);
  shape.embedding = true;
  shape.head = true;
  return shape;
}

namespace {

// Parameters of one layer. Where products add gradients up, experts of one shape count once.
std::int64_t gradient_weights(const Transformer& model, const Recipe& recipe, std::int64_t tp,
                              const ExpertDivision& experts) {
  std::int64_t sum = device_parameters(model, {{1, 0}}, 0, tp, experts).all();
  if (recipe.summed_bytes() == 0) return sum;
  for (const WeightMatrix& matrix : weight_matrices(model, tp, experts)) {
    sum -= (matrix.count - 1) * matrix.rows * matrix.columns;
  }
  return sum;
}

// What the products of a layer need of weights besides the parameters. Kernels add weight gradients to the fp32 sums
// themselves, but autograd wants a tensor of each weight's shape, which Transformer Engine makes once per shape
// (get_dummy_wgrad): together the weights of a layer, in elements. In fp32 they are the gradients that FSDP's flat
// gradient is assembled from. Frozen weights have none; in 4 bits the largest of them is there in elements.
Bytes weight_workspace(const Transformer& model, const Recipe& recipe, std::int64_t tp, const ExpertDivision& experts) {
  const std::int64_t element_bytes = model.element_bytes;
  if (!recipe.lora.is_on())
    return Bytes(gradient_weights(model, recipe, tp, experts) * recipe.parameter_bytes(element_bytes));
  std::int64_t largest = 0;
  for (const LayerOperation& operation : layer_operations(model, {}).list) {
    for (const WeightShape& weight : operation.weights) {
      largest = std::max(largest, weight.rows.on(tp) * weight.columns.on(tp) / weight.blocks);
    }
  }
  return Bytes(recipe.lora.dequantizes() ? largest * element_bytes : 0);
}

Bytes reserve_of(const DeviceShape& shape, const ExpertDivision& experts) {
  const std::int64_t of_pool = shape.pool * shape.tp > experts.devices() ? 1 : 0;
  const std::int64_t of_experts = experts.has_groups() ? 1 + of_pool + (experts.etp > 1 ? 1 : 0) : 0;
  return default_reserve(shape.tp, shape.pp, shape.pool) + communicator * of_experts;
}

Transformer last_kind(const Transformer& model, const DeviceShape& shape) {
  return of_kind(model, shape.layers.empty() ? 0 : shape.layers.back().kind);
}

}  // namespace

DeviceMemory::DeviceMemory(const Transformer& model, const DeviceShape& shape, const Recipe& recipe,
                           const ExpertUse& experts)
    : model_(last_kind(model, shape)),
      kv_heads_(common_kv_heads(model, shape.tp)),
      shape_(shape),
      recipe_(recipe),
      experts_(experts),
      kept_by_mlp_(with_mlp(kept_tensors(model_, recipe, experts), true)),
      again_at_mlp_(computed_again(model_, recipe, experts)),
      again_at_attention_(with_mlp(again_at_mlp_, false)) {
  for (const LayerRun& run : shape.layers) {
    const Transformer kind = of_kind(model, run.kind);
    kept_.push_back({run.count, kept_tensors(kind, recipe, experts), kind});
  }
  read_operations();
  const bool is_all_first =
      recipe.recompute.has(LayerModule::projection) || recipe.recompute == Recompute::per_operation;
  if (!is_all_first) again_at_mlp_ = with_mlp(again_at_mlp_, true);
  const ExpertDivision division = experts.division();
  const StateBytes states = state_bytes(model, shape, recipe, division);
  states_[MemoryPart::parameters] = states.parameters;
  states_[MemoryPart::gradients] = states.gradients;
  states_[MemoryPart::optimizer] = states.optimizer;
  host_states_ = states.host;
  if (!shape.layers.empty()) states_[MemoryPart::workspace] = weight_workspace(model_, recipe, shape.tp, division);
  states_[MemoryPart::reserve] = recipe.reserve.value_or(reserve_of(shape, division));
}

// Of a layer with shared experts the tensors are those of the others, which come behind them.
void DeviceMemory::read_operations() {
  Width input;
  for (const LayerOperation& operation : layer_operations(model_, recipe_).list) {
    if (operation.kind == OperationKind::product && !operation.is_adapter) input = operation.weights.front().columns;
    if (operation.kind == OperationKind::activation) mlp_ = {input, operation.columns.front()};
    const bool is_attention = operation.kind == OperationKind::attention;
    if (!is_attention && operation.kind != OperationKind::mixing) continue;
    for (const Width& width : operation.columns) {
      (width.is_cut ? mixing_.cut : mixing_.whole) += width.all() * model_.element_bytes;
    }
    if (is_attention) mixing_.cut += operation.columns.front().all() * fp32_bytes;
  }
}

KeptLoad DeviceMemory::kept_load(const MemoryLoad& load) const {
  const GroupSharing sharing = sharing_of(load);
  return {.tokens = load.tokens,
          .tp = shape_.tp,
          .pairs = load.pairs,
          .expert_tokens = load.expert_tokens,
          .trades_heads = form_of(sharing).keeps_traded(sharing)};
}

GroupSharing DeviceMemory::sharing_of(const MemoryLoad& load) const {
  const KeyExchange exchange = load.own_exchange ? load.own_exchange->exchange : recipe_.key_exchange;
  return group_sharing(exchange, kv_heads_, recipe_, load.ranks);
}

Bytes DeviceMemory::kept(const MemoryLoad& load) const {
  Bytes all;
  for (const auto& [layers, tensors, kind] : kept_) all += of_layer(tensors, load) * layers;
  return all;
}

Bytes DeviceMemory::kept_token_wise(const MemoryLoad& load, double share) const {
  HDPSIM_CHECK(!model_.moe, "token-wise offload of layers with experts of {}", model_.name);
  Bytes all;
  for (const auto& [layers, tensors, kind] : kept_) all += token_wise_bytes(tensors, kept_load(load), share) * layers;
  return all;
}

Bytes DeviceMemory::keys(std::int64_t tokens) const {
  Bytes all;
  for (const auto& [layers, tensors, kind] : kept_) {
    if (attention_area(kind, 1) == 0) continue;  // its state is small
    const std::int64_t reach = attention_reach(kind);
    all += kv_bytes(kind, reach > 0 ? std::min(tokens, reach) : tokens, shape_.tp) * layers;
  }
  return all;
}

Bytes DeviceMemory::key_gradients(std::int64_t tokens) const {
  return keys(tokens) * recipe_.dkv_bytes_per_element / model_.element_bytes;
}

Bytes DeviceMemory::received(std::int64_t tokens) const {
  return shape_.embedding ? Bytes{} : hidden(tokens, recipe_.sequence_parallel);
}

MemoryParts DeviceMemory::peak(const MemoryLoad& load) const {
  const Bytes activations = kept(load).scaled(load.resident);
  MemoryParts fullest = head_moment(load, activations);
  const auto look_at = [&](const MemoryParts& moment) {
    if (moment.total() > fullest.total()) fullest = moment;
  };
  if (!shape_.layers.empty()) {
    const MemoryParts at_mlp = layer_moment(load, activations, again_at_mlp_);
    look_at(activation_moment(load, at_mlp));
    look_at(mlp_moment(load, at_mlp));
    look_at(attention_moment(load, layer_moment(load, activations, again_at_attention_)));
  }
  look_at(embedding_moment());
  return with_gaps(fullest);
}

// The weight gradient of the head is being computed: all activations are present, and the input gradient is ready and
// being summed.
MemoryParts DeviceMemory::head_moment(const MemoryLoad& load, Bytes activations) const {
  MemoryParts parts = states_;
  parts[MemoryPart::activations] = activations;
  if (!shape_.head) return parts;
  const std::int64_t words = divided(model_.vocabulary, shape_.tp);
  const LossForm& form = loss_form(recipe_, shape_.tp);
  const std::int64_t at_once = loss_tokens(form.tokens, load.tokens, words, model_.hidden);
  const Bytes logits(form.held.bytes(at_once * words, model_.element_bytes));
  const Bytes weight(words * model_.hidden * model_.element_bytes);
  const Bytes weight_gradient = recipe_.lora.is_on() ? Bytes{} : weight;
  const bool cut = recipe_.sequence_parallel;
  const Bytes norm = hidden(load.tokens, cut) * 2;           // read and written by the last norm
  const Bytes cast = recipe_.autocast() ? weight : Bytes{};  // of the weight, kept since forward
  parts[MemoryPart::head] = logits + weight_gradient + cast + norm;
  parts[MemoryPart::workspace] += hidden(load.tokens, false);
  if (shape_.tp > 1 && cut) {
    parts[MemoryPart::communication] += hidden(load.tokens, false) + hidden(load.tokens, true);
  }
  return parts;
}

// The part that all moments of the last layer's backward share: all activations, the recomputed tensors, and the
// gradient of the residual.
MemoryParts DeviceMemory::layer_moment(const MemoryLoad& load, Bytes activations,
                                       const std::vector<KeptTensor>& again) const {
  MemoryParts parts = states_;
  parts[MemoryPart::activations] = activations;
  const Bytes of_stream = hidden(load.tokens, recipe_.sequence_parallel);
  parts[MemoryPart::workspace] += of_stream * parameter_bytes() / model_.element_bytes;
  parts[MemoryPart::workspace] += of_layer(again, load);
  return parts;
}

Bytes DeviceMemory::of_layer(const std::vector<KeptTensor>& tensors, const MemoryLoad& load) const {
  return kept_bytes(tensors, kept_load(load));
}

// The moment of the MLP's activation: the gradients of its output and of its input, in place of its output and of one
// of the tensors that it reads.
MemoryParts DeviceMemory::activation_moment(const MemoryLoad& load, MemoryParts parts) const {
  const std::int64_t read = model_.gated_mlp ? 2 : 1;
  parts[MemoryPart::workspace] += of_mlp(mlp_.inner, load) * read;
  return parts;
}

// The moment of the MLP's last product: the gathered gradient of its output, and the gradient of its input. With
// experts the gradients of every copy of a token, and of those that the all-to-all sent, too.
MemoryParts DeviceMemory::mlp_moment(const MemoryLoad& load, MemoryParts parts) const {
  parts[MemoryPart::workspace] += of_mlp(mlp_.inner, load);
  if (recipe_.autocast()) {  // the cast of the stream's gradient
    parts[MemoryPart::workspace] += hidden(load.tokens, recipe_.sequence_parallel);
  }
  if (model_.moe) {
    parts[MemoryPart::workspace] += of_mlp(mlp_.input, load);
    if (experts_.ep > 1) {
      const std::int64_t sent = divided(load.tokens, shape_.tp) * model_.moe->experts_per_token;
      parts[MemoryPart::communication] += Bytes(sent * mlp_.input.all() * model_.element_bytes);
      return parts;
    }
  }
  if (shape_.tp > 1) parts[MemoryPart::communication] += hidden(load.tokens, false);
  return parts;
}

// The moment of attention's backward, when the tensors of the MLP are freed: its gradients, and the buffers in which a
// group shares keys and values.
MemoryParts DeviceMemory::attention_moment(const MemoryLoad& load, MemoryParts parts) const {
  Bytes& activations = parts[MemoryPart::activations];
  activations = activations - of_layer(kept_by_mlp_, load);
  parts[MemoryPart::workspace] += attention_gradients(load.tokens);
  parts[MemoryPart::workspace] += score_gradients(load);
  parts[MemoryPart::communication] += sharing_buffers(load);
  return parts;
}

Bytes DeviceMemory::sharing_buffers(const MemoryLoad& load) const {
  const GroupSharing sharing = sharing_of(load);
  const OwnExchange own = load.own_exchange.value_or(OwnExchange{});
  return form_of(sharing).buffers({.model = model_,
                                   .recipe = recipe_,
                                   .sharing = sharing,
                                   .tp = shape_.tp,
                                   .tokens = load.tokens,
                                   .received_queries = own.received_queries,
                                   .received_keys = own.received_keys});
}

Bytes DeviceMemory::attention_gradients(std::int64_t tokens) const {
  return Bytes(divided(tokens * mixing_.cut, shape_.tp) + tokens * mixing_.whole);
}

// Without flash attention: the gradients that the kernel between the products reads and writes.
Bytes DeviceMemory::score_gradients(const MemoryLoad& load) const {
  if (recipe_.flash_attention || model_.linear) return {};
  return Bytes(2 * model_.element_bytes * divided(model_.heads, shape_.tp)).scaled(load.pairs);
}

// The moment behind the first layer, when all activations of this micro-batch are freed: the gradient of the embedding
// table before it is summed.
MemoryParts DeviceMemory::embedding_moment() const {
  MemoryParts parts = states_;
  if (!shape_.embedding || recipe_.lora.is_on()) return parts;
  parts[MemoryPart::workspace] += Bytes(divided(model_.vocabulary, shape_.tp) * model_.hidden * parameter_bytes());
  return parts;
}

MemoryParts DeviceMemory::beside(MemoryParts peak, Bytes others, Bytes gradients) const {
  peak[MemoryPart::activations] += others;
  peak[MemoryPart::workspace] += gradients;
  return with_gaps(peak);
}

MemoryParts DeviceMemory::with_gaps(MemoryParts parts) const {
  parts[MemoryPart::fragmentation] = parts.allocated().scaled(recipe_.fragmentation);
  return parts;
}

std::int64_t DeviceMemory::parameter_bytes() const {
  return recipe_.parameter_bytes(model_.element_bytes);
}

Bytes DeviceMemory::hidden(std::int64_t tokens, bool cut) const {
  return Bytes((cut ? divided(tokens, shape_.tp) : tokens) * model_.hidden * model_.element_bytes);
}

// A tensor of the MLP; of experts one of all copies, on the device that has most of them.
Bytes DeviceMemory::of_mlp(const Width& columns, const MemoryLoad& load) const {
  const std::int64_t width = columns.all() * (model_.moe ? model_.moe->experts_per_token : 1);
  if (experts_.ep == 1 || !model_.moe) {
    const std::int64_t all = load.tokens * width;
    return Bytes((columns.is_cut ? divided(all, shape_.tp) : all) * model_.element_bytes);
  }
  const std::int64_t gathered = columns.is_cut ? 1 : experts_.etp;  // devices, each with a part of the copies
  const std::int64_t tokens = load.expert_tokens.value_or(divided(load.tokens, shape_.tp));
  return Bytes(tokens * gathered * width * model_.element_bytes).scaled(experts_.hottest);
}

}  // namespace hdpsim
