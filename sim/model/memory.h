#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/experts.h"
#include "sim/model/group_sharing.h"
#include "sim/model/kept_tensors.h"
#include "sim/model/layers.h"
#include "sim/model/parameters.h"
#include "sim/model/recipe.h"
#include "sim/model/shares.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// What device memory is used for.
enum class MemoryPart : std::uint8_t {
  parameters,  ///< See Recipe::parameters; frozen ones in Lora::base.
  gradients,   ///< Accumulated over micro-batches, in fp32 unless the recipe says otherwise.
  optimizer,   ///< See optimizer_bytes(); what a host updates is in its memory.
  /// Tensors that layers keep for backward, for all micro-batches in flight; under autocast also casts of weights.
  activations,
  head,           ///< Logits, the input of the head, and its weight gradient.
  workspace,      ///< Temporary gradients in a layer, recomputed activations, weight gradients before they are summed.
  communication,  ///< Gathered hidden states, both buffers of a ring, gathered keys and values, traded heads.
  fragmentation,  ///< Gaps of the allocator.
  reserve,        ///< Memory outside the allocator: the CUDA context, communicators, channels.
};
inline constexpr std::size_t memory_parts = 9;
[[nodiscard]] std::string_view memory_part_name(MemoryPart part);

/// Bytes by their use.
class MemoryParts {
 public:
  [[nodiscard]] Bytes operator[](MemoryPart part) const { return bytes_[static_cast<std::size_t>(part)]; }
  Bytes& operator[](MemoryPart part) { return bytes_[static_cast<std::size_t>(part)]; }
  [[nodiscard]] Bytes total() const;
  /// The memory that the framework's allocator has handed out (torch.cuda.max_memory_allocated), without gaps and
  /// reserve.
  [[nodiscard]] Bytes allocated() const;
  friend bool operator==(const MemoryParts&, const MemoryParts&) = default;

 private:
  std::array<Bytes, memory_parts> bytes_{};
};

/// The CUDA context and one communicator each for the tensor-parallel group, the pipeline and the data-parallel group
/// (`pool` ranks), where these have more than one rank: 426 MiB (PyTorch 2.10, CUDA 13: unslothai/unsloth-zoo pull
/// request 1053) and 688 MiB each (A100, NVLink: NVIDIA/nccl#964). Communicators for all-to-all take several times as
/// much (nccl#1685).
[[nodiscard]] Bytes default_reserve(std::int64_t tp, std::int64_t pp, std::int64_t pool);

/// The part of a model on one device: its share of some layers, and of the embedding and the head if its pipeline
/// stage has them.
struct DeviceShape {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t pool = 1;  ///< Ranks over which ZeRO shards (the data-parallel group): those of HDP, or dp x cp.
  /// In the order of layer_runs(): the kind of the last layer comes last. Empty: embedding and head alone.
  std::vector<LayerRun> layers = {};
  bool embedding = true;
  bool head = true;
};

/// A device that has part of every layer, without a pipeline. What a stage of one has hangs on its schedule
/// (sim/program/chunk_map.h).
[[nodiscard]] DeviceShape whole_shape(const Transformer& model, DeviceShape shape);

/// A way to share a sequence that a micro-batch's cut asks for (exchange_of), and the most that a rank receives at once
/// where queries travel with the keys that they see.
struct OwnExchange {
  KeyExchange exchange = KeyExchange::servers;
  std::int64_t received_queries = 0;
  std::int64_t received_keys = 0;
};

/// A micro-batch in its backward, as one device sees it.
struct MemoryLoad {
  std::int64_t tokens = 0;  ///< Tokens of the HDP rank.
  std::int64_t ranks = 1;   ///< Ranks of its group.
  double resident = 1;      ///< Share of its activations that stays on the device and is not in host memory.
  double pairs = 0;         ///< (query, key) pairs computed on the rank; only read without flash attention.
  /// Tokens of its expert group per device of the group; if empty, the tokens of the rank per device of the rank.
  std::optional<std::int64_t> expert_tokens = {};
  std::optional<OwnExchange> own_exchange = {};  ///< In place of the recipe's.
};

/// The memory of one device of one stage.
class DeviceMemory {
 public:
  DeviceMemory(const Transformer& model, const DeviceShape& shape, const Recipe& recipe, const ExpertUse& experts = {});

  /// The memory between micro-batches: parameters, gradients, optimizer, cached weight gradients, gaps and reserve.
  [[nodiscard]] MemoryParts states() const { return with_gaps(states_); }
  /// The states that the device's host keeps for it all the time.
  [[nodiscard]] Bytes host_states() const { return host_states_; }
  /// Activations that a micro-batch keeps in all layers of the device, both on the device and in host memory.
  [[nodiscard]] Bytes kept(const MemoryLoad& load) const;
  /// The token_wise_bytes() of the same layers. Not supported for layers with experts (checked).
  [[nodiscard]] Bytes kept_token_wise(const MemoryLoad& load, double share) const;
  /// The keys and values of `tokens` tokens in all layers of the device, as far as tokens behind them see these, and
  /// their gradients. O(kinds of layers).
  [[nodiscard]] Bytes keys(std::int64_t tokens) const;
  [[nodiscard]] Bytes key_gradients(std::int64_t tokens) const;
  /// What a stage of a pipeline keeps of a micro-batch if it repeats its forward pass: the hidden states that it
  /// received.
  [[nodiscard]] Bytes received(std::int64_t tokens) const;
  /// The memory at the fullest moment of a micro-batch's backward: in the head, in one of the operations of the last
  /// layer, or in the embedding. O(kinds of layers).
  [[nodiscard]] MemoryParts peak(const MemoryLoad& load) const;
  /// The same moment with the activations `others` of other micro-batches in flight, which add to every moment alike,
  /// and with gradients of keys and values of other tokens.
  [[nodiscard]] MemoryParts beside(MemoryParts peak, Bytes others, Bytes gradients = {}) const;

 private:
  [[nodiscard]] MemoryParts head_moment(const MemoryLoad& load, Bytes activations) const;
  [[nodiscard]] MemoryParts layer_moment(const MemoryLoad& load, Bytes activations,
                                         const std::vector<KeptTensor>& again) const;
  // The next three add to a layer_moment().
  [[nodiscard]] MemoryParts activation_moment(const MemoryLoad& load, MemoryParts parts) const;
  [[nodiscard]] MemoryParts mlp_moment(const MemoryLoad& load, MemoryParts parts) const;
  [[nodiscard]] MemoryParts attention_moment(const MemoryLoad& load, MemoryParts parts) const;
  [[nodiscard]] MemoryParts embedding_moment() const;
  [[nodiscard]] KeptLoad kept_load(const MemoryLoad& load) const;
  [[nodiscard]] Bytes of_layer(const std::vector<KeptTensor>& tensors, const MemoryLoad& load) const;
  [[nodiscard]] MemoryParts with_gaps(MemoryParts parts) const;
  /// Recipe::parameter_bytes() of the model.
  [[nodiscard]] std::int64_t parameter_bytes() const;
  [[nodiscard]] Bytes hidden(std::int64_t tokens, bool cut) const;
  [[nodiscard]] Bytes of_mlp(const Width& columns, const MemoryLoad& load) const;
  [[nodiscard]] Bytes attention_gradients(std::int64_t tokens) const;
  [[nodiscard]] Bytes score_gradients(const MemoryLoad& load) const;
  [[nodiscard]] Bytes sharing_buffers(const MemoryLoad& load) const;
  [[nodiscard]] GroupSharing sharing_of(const MemoryLoad& load) const;

  /// Columns of what the products of an MLP or of experts read: before the activation, and behind it.
  struct MlpColumns {
    Width input = {};
    Width inner = {};
  };
  /// Bytes per token of the gradients of what attention or linear mixing reads and writes, in elements, and of an fp32
  /// sum of the queries'.
  struct MixingGradients {
    std::int64_t cut = 0;    ///< Divided over the tensor-parallel group.
    std::int64_t whole = 0;  ///< On every device.
  };
  void read_operations();

  /// The tensors that one of the device's layers keeps.
  struct Kept {
    std::int64_t layers;
    std::vector<KeptTensor> tensors;
    Transformer kind;
  };

  const Transformer model_;  ///< The model, as the last layer of the device is.
  std::int64_t kv_heads_;    ///< common_kv_heads() of the model as a whole.
  DeviceShape shape_;
  Recipe recipe_;
  ExpertUse experts_;
  std::vector<Kept> kept_;               ///< By kind of layer, the kind of the last layer last.
  std::vector<KeptTensor> kept_by_mlp_;  ///< The tensors among these that the MLP or the experts keep: freed before
                                         ///< attention's backward begins.
  /// Recomputed tensors present at the MLP's backward and at attention's. Attention is recomputed after the MLP's
  /// backward, or before it where the recomputed MLP input needs it.
  std::vector<KeptTensor> again_at_mlp_;
  std::vector<KeptTensor> again_at_attention_;
  MlpColumns mlp_;
  MixingGradients mixing_;
  MemoryParts states_;
  Bytes host_states_;
};

}  // namespace hdpsim
