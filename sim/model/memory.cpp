#include "sim/model/memory.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"
#include "sim/model/work.h"

namespace hdpsim {
namespace {

constexpr std::int64_t bf16 = 2;
constexpr std::int64_t fp32 = 4;
constexpr std::int64_t mask_byte = 1;
constexpr std::int64_t adam_states = 3 * fp32;
constexpr std::int64_t layers_in_full = 2;  // of what ZeRO-2 and ZeRO-3 shard
constexpr Bytes cuda_context(426 * 1024 * 1024);
constexpr Bytes communicator(688 * 1024 * 1024);

std::int64_t divided(std::int64_t count, std::int64_t by) {
  return (count + by - 1) / by;
}

std::int64_t inner_width(const Transformer& model) {
  if (!model.moe) return model.ffn_hidden;
  return (model.moe->experts_per_token + model.moe->shared_experts) * model.moe->expert_hidden;
}

std::int64_t query_width(const Transformer& model) {
  return model.heads * model.head_dim;
}

std::int64_t kv_width(const Transformer& model) {
  return model.kv_heads * model.head_dim;
}

/// Writes down what a layer keeps in the order in which forward makes it.
class KeptList {
 public:
  KeptList(const Transformer& model, const ActivationRules& rules) : model_(model), rules_(rules) {}

  std::vector<KeptTensor> run() {
    if (rules_.recompute == Recompute::full) {
      residual("input of the layer", bf16);
      return std::move(list_);
    }
    residual("input of attention's norm", bf16);
    residual("input of the QKV product", bf16);
    attention();
    if (rules_.dropout) residual("dropout mask behind attention", mask_byte);
    residual("input of the MLP's norm", bf16);
    residual("input of the MLP", bf16);
    cut("input of the activation", bf16 * (model_.gated_mlp ? 2 : 1) * inner_width(model_));
    cut("output of the activation", bf16 * inner_width(model_));
    if (rules_.dropout) residual("dropout mask behind the MLP", mask_byte);
    return std::move(list_);
  }

 private:
  void attention() {
    cut("queries", bf16 * query_width(model_));
    cut("keys", bf16 * kv_width(model_));
    cut("values", bf16 * kv_width(model_));
    if (rules_.recompute == Recompute::none) core();
    if (!output_is_computed_again()) cut("output of attention", bf16 * query_width(model_));
  }

  [[nodiscard]] bool output_is_computed_again() const {
    return rules_.recompute == Recompute::selective && rules_.flash_attention;
  }

  // What lies between queries, keys and values and the output.
  void core() {
    if (rules_.flash_attention) return cut("log-sum-exp", fp32 * model_.heads);
    scores("softmax of the scores", bf16);
    if (!rules_.dropout) return;
    scores("dropout mask of the scores", mask_byte);
    scores("scores behind dropout", bf16);
  }

  void cut(std::string_view name, std::int64_t bytes_per_token) { list_.push_back({name, bytes_per_token, 0, true}); }
  void residual(std::string_view name, std::int64_t bytes_per_element) {
    list_.push_back({name, bytes_per_element * model_.hidden, 0, rules_.sequence_parallel});
  }
  void scores(std::string_view name, std::int64_t bytes_per_element) {
    list_.push_back({name, 0, bytes_per_element * model_.heads, true});
  }

  const Transformer& model_;
  const ActivationRules& rules_;
  std::vector<KeptTensor> list_;
};

ActivationRules without_recompute(ActivationRules rules) {
  rules.recompute = Recompute::none;
  return rules;
}

}  // namespace

std::vector<KeptTensor> kept_tensors(const Transformer& model, const ActivationRules& rules) {
  return KeptList(model, rules).run();
}

Bytes kept_bytes(const std::vector<KeptTensor>& tensors, std::int64_t tokens, std::int64_t tp, std::int64_t pairs) {
  HDPSIM_CHECK(tp > 0, "a tensor-parallel group of {}", tp);
  std::int64_t cut = 0;
  std::int64_t whole = 0;
  for (const KeptTensor& tensor : tensors) {
    (tensor.cut ? cut : whole) += tokens * tensor.bytes_per_token + pairs * tensor.bytes_per_pair;
  }
  return Bytes(divided(cut, tp) + whole);
}

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

DeviceShape stage_shape(const Transformer& model, DeviceShape shape, std::int64_t stage) {
  HDPSIM_CHECK(0 <= stage && stage < shape.pp, "stage {} of {}", stage, shape.pp);
  shape.layers = model.layers / shape.pp + (stage < model.layers % shape.pp ? 1 : 0);
  shape.embedding = stage == 0;
  shape.head = stage == shape.pp - 1;
  return shape;
}

DeviceMemory::DeviceMemory(const Transformer& model, const DeviceShape& shape, const MemoryRules& rules)
    : model_(model),
      shape_(shape),
      rules_(rules),
      kept_(kept_tensors(model, rules.activations)),
      all_(kept_tensors(model, without_recompute(rules.activations))) {
  const std::int64_t layer = layer_parameter_count(model);
  const bool own_head = shape.head && (!model.tied_embeddings || !shape.embedding);
  const std::int64_t rows =
      (shape.embedding ? model.vocabulary + model.learned_positions : 0) + (own_head ? model.vocabulary : 0);
  const std::int64_t last_norm = parameter_count(model) - model.layers * layer - embedding_parameter_count(model);
  const std::int64_t parameters =
      divided(shape.layers * layer + rows * model.hidden + (shape.head ? last_norm : 0), shape.tp);
  const std::int64_t shard = divided(parameters, shape.pool);
  const std::int64_t in_full = std::min(parameters, divided(std::min(layers_in_full, shape.layers) * layer, shape.tp));
  const auto held = [&](std::int64_t sharded_from) {
    return rules.zero < sharded_from ? parameters : std::min(parameters, shard + in_full);
  };
  states_[MemoryPart::parameters] = Bytes(held(3) * bf16);
  states_[MemoryPart::gradients] = Bytes(held(2) * fp32);
  states_[MemoryPart::optimizer] = Bytes((rules.zero < 1 ? parameters : shard) * adam_states);
  // Kernels add weight gradients to the fp32 sums themselves, but autograd wants a tensor of each weight's shape, which
  // Transformer Engine makes once a shape (get_dummy_wgrad): together a layer's weights in bf16.
  states_[MemoryPart::workspace] = Bytes(divided(layer, shape.tp) * bf16);
  states_[MemoryPart::reserve] = rules.reserve.value_or(default_reserve(shape.tp, shape.pp, shape.pool));
}

Bytes DeviceMemory::kept(std::int64_t tokens, std::int64_t pairs) const {
  return kept_bytes(kept_, tokens, shape_.tp, pairs) * shape_.layers;
}

MemoryParts DeviceMemory::peak(const MemoryLoad& load) const {
  MemoryParts fullest;
  for (const MemoryParts& moment :
       {head_moment(load), activation_moment(load), mlp_moment(load), attention_moment(load), embedding_moment()}) {
    if (moment.total() > fullest.total()) fullest = moment;
  }
  return with_gaps(fullest);
}

// All activations are there, and the weight gradient is being computed: the input gradient is ready and being summed.
MemoryParts DeviceMemory::head_moment(const MemoryLoad& load) const {
  MemoryParts parts = states_;
  parts[MemoryPart::activations] = kept(load.tokens, load.pairs).scaled(load.resident);
  if (!shape_.head) return parts;
  const std::int64_t words = divided(model_.vocabulary, shape_.tp);
  const Bytes logits(load.tokens * words * (rules_.fused_loss ? bf16 : bf16 + fp32));
  const Bytes weight_gradient(words * model_.hidden * bf16);
  const bool cut = rules_.activations.sequence_parallel;
  const Bytes norm = hidden(load.tokens, cut) * 2;  // what the last norm read and wrote
  parts[MemoryPart::head] = logits + weight_gradient + norm;
  parts[MemoryPart::workspace] += hidden(load.tokens, false);
  if (shape_.tp > 1 && cut) {
    parts[MemoryPart::communication] += hidden(load.tokens, false) + hidden(load.tokens, true);
  }
  return parts;
}

// What all moments of the last layer's backward have in common: all activations, and the gradient of its residual. A
// layer that is computed again has them all.
MemoryParts DeviceMemory::layer_moment(const MemoryLoad& load) const {
  MemoryParts parts = states_;
  if (shape_.layers == 0) return parts;
  parts[MemoryPart::activations] = kept(load.tokens, load.pairs).scaled(load.resident);
  parts[MemoryPart::workspace] += hidden(load.tokens, rules_.activations.sequence_parallel);
  if (rules_.activations.recompute == Recompute::full) {
    parts[MemoryPart::workspace] += kept_bytes(all_, load.tokens, shape_.tp, load.pairs);
  }
  return parts;
}

// Behind the MLP's last product, whose input is gone: the gradients of what the activation wrote and of what it read.
MemoryParts DeviceMemory::activation_moment(const MemoryLoad& load) const {
  MemoryParts parts = layer_moment(load);
  const std::int64_t read = model_.gated_mlp ? 2 : 1;
  parts[MemoryPart::workspace] += inner(load.tokens) * (1 + read) - inner(load.tokens);
  return parts;
}

// At the MLP's last product: the gradient of its output, gathered, and that of its input.
MemoryParts DeviceMemory::mlp_moment(const MemoryLoad& load) const {
  MemoryParts parts = layer_moment(load);
  parts[MemoryPart::workspace] += inner(load.tokens);
  if (shape_.tp > 1) parts[MemoryPart::communication] += hidden(load.tokens, false);
  return parts;
}

// At attention's backward, when the layer's MLP is gone: gradients of the output, of q, k and v and an fp32 sum of q's
// (FlashAttention), and in a ring two buffers each of keys and values and of their gradients.
MemoryParts DeviceMemory::attention_moment(const MemoryLoad& load) const {
  MemoryParts parts = layer_moment(load);
  if (shape_.layers == 0) return parts;
  const Recompute recompute = rules_.activations.recompute;
  const std::int64_t read = model_.gated_mlp ? 2 : 1;
  const Bytes mlp = inner(load.tokens) * (1 + read) + hidden(load.tokens, rules_.activations.sequence_parallel);
  Bytes& layer = parts[recompute == Recompute::full ? MemoryPart::workspace : MemoryPart::activations];
  layer = layer - mlp;
  const std::int64_t widths = 2 * query_width(model_) + 2 * kv_width(model_);
  parts[MemoryPart::workspace] += Bytes(divided(load.tokens * (widths * bf16 + query_width(model_) * fp32), shape_.tp));
  if (recompute == Recompute::selective) {
    parts[MemoryPart::workspace] +=
        kept_bytes(all_, load.tokens, shape_.tp, load.pairs) - kept_bytes(kept_, load.tokens, shape_.tp, load.pairs);
  }
  if (load.ring > 1) parts[MemoryPart::communication] += kv_bytes(model_, load.tokens, shape_.tp) * (2 + 2);
  return parts;
}

// Behind the first layer, with nothing left of this micro-batch: the table's gradient in bf16, before it is summed.
MemoryParts DeviceMemory::embedding_moment() const {
  MemoryParts parts = states_;
  if (!shape_.embedding) return parts;
  parts[MemoryPart::workspace] += Bytes(divided(model_.vocabulary, shape_.tp) * model_.hidden * bf16);
  return parts;
}

MemoryParts DeviceMemory::beside(MemoryParts peak, Bytes others) const {
  peak[MemoryPart::activations] += others;
  return with_gaps(peak);
}

MemoryParts DeviceMemory::with_gaps(MemoryParts parts) const {
  parts[MemoryPart::fragmentation] = parts.allocated().scaled(rules_.fragmentation);
  return parts;
}

Bytes DeviceMemory::hidden(std::int64_t tokens, bool cut) const {
  return Bytes((cut ? divided(tokens, shape_.tp) : tokens) * model_.hidden * bf16);
}

Bytes DeviceMemory::inner(std::int64_t tokens) const {
  return Bytes(divided(tokens * inner_width(model_), shape_.tp) * bf16);
}

std::int64_t chunks_in_flight(std::int64_t pp, std::int64_t stage, std::int64_t virtual_stages,
                              std::int64_t micro_batches) {
  const std::int64_t behind = pp - stage - 1;
  const std::int64_t warm_up = virtual_stages == 1 ? behind : 2 * behind + (virtual_stages - 1) * pp;
  return std::min(warm_up + 1, micro_batches * virtual_stages);
}

MemoryParts stage_memory(const Transformer& model, const TrainingSetting& setting, const MemoryRules& rules,
                         std::int64_t stage) {
  const std::int64_t tokens = divided(setting.micro_batch * setting.sequence, setting.cp);
  const std::int64_t pairs = setting.micro_batch * divided(setting.sequence * setting.sequence, setting.cp);
  const DeviceShape shape{.tp = setting.tp, .pp = setting.pp, .pool = setting.dp * setting.cp};
  const DeviceMemory device(model, stage_shape(model, shape, stage), rules);
  const std::int64_t chunks = chunks_in_flight(setting.pp, stage, setting.virtual_stages, setting.micro_batches);
  const std::int64_t other_chunks = std::max<std::int64_t>(0, chunks - setting.virtual_stages);
  const Bytes others = device.kept(tokens, pairs) * other_chunks / setting.virtual_stages;
  return device.beside(device.peak({.tokens = tokens, .ring = setting.cp, .pairs = pairs}), others);
}

MemoryParts peak_memory(const Transformer& model, const TrainingSetting& setting, const MemoryRules& rules) {
  MemoryParts fullest;
  for (std::int64_t stage = 0; stage < setting.pp; ++stage) {
    const MemoryParts peak = stage_memory(model, setting, rules, stage);
    if (peak.total() > fullest.total()) fullest = peak;
  }
  return fullest;
}

}  // namespace hdpsim
