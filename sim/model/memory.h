#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/experts.h"
#include "sim/model/recompute.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// How a layer is computed, as far as it decides what backward finds in memory.
struct ActivationRules {
  Recompute recompute = {};
  bool flash_attention = true;    ///< Keeps q, k, v, o and the log-sum-exp; otherwise the matrices of scores.
  bool sequence_parallel = true;  ///< Norms and residuals on tokens / tp (Korthikanti et al. 2022).
  bool dropout = false;           ///< Of scores and of both residual branches, with a byte of mask an element.
  std::int64_t ep = 1;            ///< Devices of an expert group: see ExpertLayout.
  double hottest = 1;             ///< Copies on the expert device that has most, for one of an even share.
};

/// The rules with the expert groups of a model; as they are for one without experts.
[[nodiscard]] ActivationRules with_experts(ActivationRules rules, const Transformer& model, const ExpertLayout& layout);

/// A tensor that a layer keeps from its forward to its backward. Bytes are those of the whole tensor-parallel group.
struct KeptTensor {
  std::string_view name;
  std::int64_t bytes_per_token = 0;
  std::int64_t bytes_per_pair = 0;  ///< Per (query, key) pair that is computed; without flash attention only.
  bool cut = true;                  ///< Over the tensor-parallel group; otherwise each of its devices has all of it.
  bool of_experts = false;          ///< For a token of an expert group, and of one of its devices.
  bool of_mlp = false;              ///< Gone when attention's backward begins.
  bool goes_whole = false;          ///< Under token-wise offload: a layer's input, or attention's output.
};

/// What one layer keeps, operation by operation: elements, log-sum-exp in fp32, masks in bytes. For a GPT layer in bf16
/// with dropout and without flash attention these are the 34 s b h + 5 a s^2 b bytes of Korthikanti et al. 2022, eq. 1.
/// What a module makes that is computed again is left out. Of the attention core that is what has a byte for each pair;
/// flash attention has no such tensor and runs as a whole, so that its output is not kept either. Of the projection it
/// is the input of the MLP's norm, and of the layer as a whole all but its input.
///
/// With experts it keeps the router's probabilities in fp32 and every copy of a token in place of the MLP's input. The
/// probabilities weigh the output of the activation, so that nothing is kept behind the experts' last product.
[[nodiscard]] std::vector<KeptTensor> kept_tensors(const Transformer& model, const ActivationRules& rules);

/// Bytes of these tensors on one device of a tensor-parallel group, for `tokens` tokens of an HDP rank. `expert_tokens`
/// are those of an expert group for each of its devices; without, as many as the rank has for each of its own.
[[nodiscard]] Bytes kept_bytes(const std::vector<KeptTensor>& tensors, std::int64_t tokens, std::int64_t tp,
                               std::int64_t pairs = 0, std::optional<std::int64_t> expert_tokens = {});

/// Of these bytes those that go to host memory under token-wise offload (MEMO, Zhao et al. 2024, section 4.1): of each
/// layer's input and of attention's output all, of the rest `share`.
[[nodiscard]] Bytes token_wise_bytes(const std::vector<KeptTensor>& tensors, std::int64_t tokens, std::int64_t tp,
                                     double share);

/// What device memory is used for.
enum class MemoryPart : std::uint8_t {
  parameters,   ///< As elements.
  gradients,    ///< Accumulated over micro-batches, in fp32 where the rules do not say otherwise.
  optimizer,    ///< Adam: fp32 weights, momentum and variance.
  activations,  ///< What layers keep for backward, of all micro-batches in flight.
  head,         ///< Logits, the input of the head, and its weight gradient.
  workspace,    ///< Gradients on their way through a layer, recomputed activations, weight gradients before their sum.
  communication,  ///< Gathered hidden states, both buffers of a ring.
  fragmentation,  ///< Gaps of the allocator.
  reserve,        ///< Outside of the allocator: the CUDA context, communicators, channels.
};
inline constexpr std::size_t memory_parts = 9;
[[nodiscard]] std::string_view memory_part_name(MemoryPart part);

/// Bytes by what they are used for.
class MemoryParts {
 public:
  [[nodiscard]] Bytes operator[](MemoryPart part) const { return bytes_[static_cast<std::size_t>(part)]; }
  Bytes& operator[](MemoryPart part) { return bytes_[static_cast<std::size_t>(part)]; }
  [[nodiscard]] Bytes total() const;
  /// What the framework's allocator has handed out (torch.cuda.max_memory_allocated): without gaps and reserve.
  [[nodiscard]] Bytes allocated() const;
  friend bool operator==(const MemoryParts&, const MemoryParts&) = default;

 private:
  std::array<Bytes, memory_parts> bytes_{};
};

/// What a training framework does with memory. The defaults are those of Megatron-LM with Transformer Engine.
struct MemoryRules {
  ActivationRules activations{};
  /// 0: nothing is sharded over the pool; 1: the optimizer; 2: gradients too; 3: parameters too (Rajbhandari et al.
  /// 2020). What is sharded beyond the optimizer exists in full for two layers: the one at work and its neighbour.
  std::int64_t zero = 1;
  std::int64_t gradient_bytes = 4;  ///< Of an element that is accumulated.
  /// The cross-entropy turns the logits into their gradient in place; otherwise it has an fp32 copy.
  bool fused_loss = true;
  /// Gaps, as a share of what is allocated. 4.7 % is the median of reserved over allocated memory of the 15 Llama runs
  /// that SimuMax v1.2 publishes (docs/b200/b200_release_v1.2_summary.json; 2.8 to 9.3 %).
  double fragmentation = 0.047;
  /// Outside of the allocator; by default default_reserve().
  std::optional<Bytes> reserve{};
};

/// The CUDA context and one communicator each of the tensor-parallel group, the pipeline and the pool, where they have
/// more than one rank: 426 MiB (PyTorch 2.10, CUDA 13: unslothai/unsloth-zoo pull request 1053) and 688 MiB each (A100,
/// NVLink: NVIDIA/nccl issue 964). Communicators that do all-to-all take several times as much (nccl issue 1685).
[[nodiscard]] Bytes default_reserve(std::int64_t tp, std::int64_t pp, std::int64_t pool);

/// What one device has of a model: its part of `layers` layers, and of the embedding and the head if its pipeline stage
/// has them.
struct DeviceShape {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t pool = 1;  ///< Ranks over which ZeRO shards: those of HDP, or dp x cp.
  std::int64_t layers = 0;
  std::int64_t expert_layers = 0;  ///< Of these.
  bool embedding = true;
  bool head = true;
};

/// The stage `stage` of `shape.pp`: layers are dealt evenly, the first stages have one more where they do not divide.
[[nodiscard]] DeviceShape stage_shape(const Transformer& model, DeviceShape shape, std::int64_t stage);

/// A micro-batch in its backward, as one device sees it.
struct MemoryLoad {
  std::int64_t tokens = 0;  ///< Of the HDP rank.
  std::int64_t ring = 1;    ///< Ranks of the group.
  double resident = 1;      ///< Share of its activations that is not in host memory.
  std::int64_t pairs = 0;   ///< (query, key) pairs computed on the rank; read without flash attention only.
  /// Of its expert group for each of the group's devices; without, as many as the rank has for each of its own.
  std::optional<std::int64_t> expert_tokens = {};
};

/// The memory of one device of one stage.
class DeviceMemory {
 public:
  DeviceMemory(const Transformer& model, const DeviceShape& shape, const MemoryRules& rules);

  /// Between micro-batches: parameters, gradients, optimizer, cached weight gradients, gaps and reserve.
  [[nodiscard]] MemoryParts states() const { return with_gaps(states_); }
  /// Activations that a micro-batch keeps in all layers of the device, wherever they are.
  [[nodiscard]] Bytes kept(std::int64_t tokens, std::int64_t pairs = 0,
                           std::optional<std::int64_t> expert_tokens = {}) const;
  /// The token_wise_bytes() of the same layers. A model with experts has none (checked).
  [[nodiscard]] Bytes kept_token_wise(std::int64_t tokens, double share) const;
  /// The fullest moment of a micro-batch's backward: the head's, that of one of the operations of the last layer, or
  /// the embedding's. O(1).
  [[nodiscard]] MemoryParts peak(const MemoryLoad& load) const;
  /// The same moment with activations of other micro-batches beside it: they come on top of every moment alike.
  [[nodiscard]] MemoryParts beside(MemoryParts peak, Bytes others) const;

 private:
  [[nodiscard]] MemoryParts head_moment(const MemoryLoad& load) const;
  [[nodiscard]] MemoryParts activation_moment(const MemoryLoad& load) const;
  [[nodiscard]] MemoryParts mlp_moment(const MemoryLoad& load) const;
  [[nodiscard]] MemoryParts attention_moment(const MemoryLoad& load) const;
  [[nodiscard]] MemoryParts embedding_moment() const;
  [[nodiscard]] MemoryParts layer_moment(const MemoryLoad& load, const std::vector<KeptTensor>& again) const;
  [[nodiscard]] Bytes of_layer(const std::vector<KeptTensor>& tensors, const MemoryLoad& load) const;
  [[nodiscard]] MemoryParts with_gaps(MemoryParts parts) const;
  [[nodiscard]] Bytes hidden(std::int64_t tokens, bool cut) const;
  [[nodiscard]] Bytes inner(const MemoryLoad& load) const;
  [[nodiscard]] Bytes copies(const MemoryLoad& load) const;

  const Transformer model_;  ///< As its layers are that have experts, if any has.
  DeviceShape shape_;
  MemoryRules rules_;
  std::vector<KeptTensor> kept_;
  std::vector<KeptTensor> kept_by_mlp_;  ///< Of these, or its experts: gone when attention's backward begins.
  /// What is there again at the MLP's backward, and at attention's, which is computed again behind it; before it where
  /// the MLP's input needs it.
  std::vector<KeptTensor> again_at_mlp_;
  std::vector<KeptTensor> again_at_attention_;
  std::vector<KeptTensor> dense_kept_;  ///< Of the other layers.
  MemoryParts states_;
};

/// Model chunks that a stage has in flight at most, each of 1 / (pp x virtual_stages) of the layers: 1F1B holds pp -
/// stage micro-batches, the interleaved schedule 2 (pp - stage - 1) + (v - 1) pp + 1 chunks (Narayanan et al. 2021), on
/// the first stage 1 + (pp - 1) / (pp v) times the model's layers (Korthikanti et al. 2022, section 4.2.3).
[[nodiscard]] std::int64_t chunks_in_flight(std::int64_t pp, std::int64_t stage, std::int64_t virtual_stages,
                                            std::int64_t micro_batches);

/// Training with equal micro-batches, in the terms of other frameworks.
struct TrainingSetting {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t dp = 1;
  std::int64_t cp = 1;
  std::int64_t micro_batch = 1;    ///< Sequences.
  std::int64_t micro_batches = 1;  ///< Per pipeline and step.
  std::int64_t sequence = 0;       ///< Tokens.
};

/// The memory of a device of one stage at its fullest moment.
[[nodiscard]] MemoryParts stage_memory(const Transformer& model, const TrainingSetting& setting,
                                       const MemoryRules& rules, std::int64_t stage);
/// The same of the fullest stage.
[[nodiscard]] MemoryParts peak_memory(const Transformer& model, const TrainingSetting& setting,
                                      const MemoryRules& rules);

}  // namespace hdpsim
