#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/exec/impl/layer_kinds.h"
#include "kernels/exec/parameter_tensors.h"
#include "kernels/exec/share.h"
#include "kernels/ring/rank_attention.h"
#include "kernels/spec/backend.h"
#include "kernels/spec/host_copies.h"
#include "sim/model/recompute.h"
#include "sim/model/transformer.h"
#include "sim/program/pipeline.h"

namespace hdpsim::kernels::exec {

/// Rows of a micro-batch on one device. Products and attention process all rows of the HDP rank; norms and residuals
/// process the device's own rows, which are all of them without tensor parallelism (sequence parallelism, Korthikanti
/// et al. 2022).
struct Rows {
  std::int64_t all = 0;
  std::int64_t own = 0;
  std::int64_t share = 0;   ///< ceil(all / devices): own rows begin at index x share; the last devices may have fewer.
  std::int64_t padded = 0;  ///< devices x share: rows of gathered buffers.
  std::int64_t begin = 0;   ///< First of the own rows.
};

/// The rows of a device if the HDP rank has `all` rows.
[[nodiscard]] Rows rows_on(const TensorShard& shard, std::int64_t all);

/// The tensors that a layer keeps for its backward pass. T rows, S own rows, G padded rows; of the layer's kind H heads
/// and K key-value heads of the device, of dimension d, and inner width f of the device; hidden size h. Gathered inputs
/// of products are kept gathered. A float* is fp32, all others are elements of the backend.
struct LayerActivations {
  void* input = nullptr;  ///< [S, h]
  float* attention_inverse_rms = nullptr;
  void* attention_normed = nullptr;  ///< [G, h]
  void* q = nullptr;                 ///< [T, H d]
  void* kv = nullptr;                ///< [T, K (d + v)]: keys, then values, of width v
  void* o = nullptr;                 ///< [T, H v]
  float* lse = nullptr;              ///< [H, T]
  void* middle = nullptr;            ///< [S, h], between attention and MLP
  float* mlp_inverse_rms = nullptr;
  void* mlp_normed = nullptr;  ///< [G, h]
  void* gate_up = nullptr;     ///< [T, 2 f]; backward puts its gradient here
  void* inner = nullptr;       ///< [T, f]
  // Latents of widths r_q and r, before and behind their norms.
  void* latent_q = nullptr;         ///< [T, r_q]
  void* latent_q_normed = nullptr;  ///< [T, r_q]
  float* latent_q_inverse_rms = nullptr;
  void* latent_kv = nullptr;         ///< [T, r]
  void* latent_kv_normed = nullptr;  ///< [T, r]
  float* latent_kv_inverse_rms = nullptr;
  // Of linear mixing by H heads of dimension d, c chunks of LayerMixing's documents:
  void* mixing_inputs = nullptr;  ///< [T, 3 H d]: q, k and v before their activation, ...
  void* mixing_qkv = nullptr;     ///< ... and behind it
  void* mixing_gate = nullptr;    ///< [T, H d]
  void* mixing_output = nullptr;  ///< [T, H d]
  void* mixing_normed = nullptr;  ///< [T, H d]; o is [T, H d], too
  float* mixing_inverse_rms = nullptr;
  float* chunk_states = nullptr;  ///< [H, c, d, d]
  // Of E experts of inner width g, k for each token; `gate_up` and `inner` are those of the shared ones.
  std::int32_t* expert_ids = nullptr;     ///< [T, k]
  std::int32_t* expert_rows = nullptr;    ///< [T, k], see SortCopies
  std::int32_t* expert_begins = nullptr;  ///< [E + 1]
  float* expert_weights = nullptr;        ///< [T, k]
  void* copies = nullptr;                 ///< [T k, h]
  void* expert_gate_up = nullptr;         ///< [T k, 2 g]; backward puts its gradient here
  void* expert_inner = nullptr;           ///< [T k, g]
  void* expert_outputs = nullptr;         ///< [T k, h]
  // Where ranks trade tokens for heads, attention is that of these: P rows of the party, 1 / n of the heads. `lse` is
  // then [H / n, P].
  void* traded_q = nullptr;   ///< [P, H d / n]
  void* traded_kv = nullptr;  ///< [P, K (d + v) / n]
  void* traded_o = nullptr;   ///< [P, H v / n]
  // What the first part of a backward in two leaves to the second: gradients of the results of products.
  void* d_q = nullptr;       ///< [T, H d], before the rotation
  void* d_kv = nullptr;      ///< [T, K (d + v)], likewise
  void* d_middle = nullptr;  ///< [G, h], of the output projection's
  void* d_output = nullptr;  ///< [G, h], of the MLP's
};

/// Consecutive layers of one pass: all layers, or a chunk of a pipeline.
struct ModelChunk {
  LayerRange layers;
  bool has_head = true;
  [[nodiscard]] std::int64_t last_layer() const { return layers.first + layers.count - 1; }
};

/// Tensors that all layers of a chunk share, with room for the widest of them. Gradients, and the output of a chunk
/// without the head, live as long as a pass.
struct SharedActivations {
  std::int32_t* ids = nullptr;      ///< Within the device's part of the vocabulary; -1: on another device.
  std::int32_t* targets = nullptr;  ///< The same; beyond its part: on another device; -1: none.
  std::int32_t* positions = nullptr;
  void* output = nullptr;  ///< [S, h], of the last layer
  float* final_inverse_rms = nullptr;
  void* final_normed = nullptr;  ///< [G, h]
  void* logits = nullptr;        ///< [T, vocabulary]; backward puts their gradient here
  float* log_sum_exp = nullptr;  ///< [devices, T] of the logits of each; [T] of all once they are joined
  float* loss = nullptr;         ///< [T]
  void* d_embedded = nullptr;    ///< [G, h], of the embedding's result: what a first part of backward leaves
  void* d_x = nullptr;           ///< [G, h], of the residual stream
  void* d_normed = nullptr;      ///< [G, h]; also the partial sums of products in forward
  void* d_inner = nullptr;       ///< [T, f]
  void* d_o = nullptr;           ///< [T, H v]
  float* d_q = nullptr;          ///< [T, H d]
  float* d_kv = nullptr;         ///< [T, K (d + v)]
  void* d_q_rounded = nullptr;   ///< The same as elements: the same memory, if these are fp32.
  void* d_kv_rounded = nullptr;
  // For latents, with e rotated columns:
  void* expanded = nullptr;  ///< [T, H (d - e)] or [T, H v]: of all heads, or their gradient
  void* rotated = nullptr;   ///< [T, e]: of the keys of all heads, or their gradient
  void* d_latent = nullptr;  ///< [T, r_q] or [T, r]
  // For linear mixing:
  float* d_mixing = nullptr;      ///< [T, 3 H d]
  void* d_mixing_gate = nullptr;  ///< [T, H d]
  // For experts:
  void* scores = nullptr;          ///< [T, E], or their gradient
  void* d_copies = nullptr;        ///< [T k, h]
  void* d_expert_inner = nullptr;  ///< [T k, g]
  float* d_expert_weights = nullptr;
  // For devices that sum elements other than fp32:
  void* parts = nullptr;  ///< [G, h], of the device's own rows, by device
  float* sum = nullptr;   ///< [2, S, h]
};

/// How a micro-batch's activations are kept between forward and backward.
struct Keeping {
  Recompute recompute = {};
  /// The share of a layer's kept activations that goes to the host: whole tensors, the largest first, as many as fit
  /// into it. Models of two layers offload nothing, because those stay on the device.
  double offload = 0;
  /// Backward comes in two passes, with others between them. What is computed again or comes back from the host for the
  /// first stays there for the second, so that each of them needs room for all layers.
  bool splits_backward = false;
};

/// Device memory that grows. Growing discards its contents.
class GrowingMemory {
 public:
  explicit GrowingMemory(Backend& backend) : backend_(backend) {}
  void reserve(std::size_t bytes);
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(memory_.get()); }

 private:
  Backend& backend_;
  DeviceMemory memory_;
  std::size_t capacity_ = 0;
};

/// The activations that one micro-batch keeps of a chunk from its forward to its backward pass, in one piece of device
/// memory that later micro-batches reuse and grow, and another one on the host. A kept tensor has a place for every
/// layer of its kind. A tensor that goes to the host has two places, for the layers that are on the device, and the
/// layer's input three, because the layer before writes it. A recomputed tensor has one place for all layers, in the
/// workspace, like all tensors that do not outlive a pass.
class Activations {
 public:
  /// `model` is the whole model. `workspace` belongs to the device, for one pass at a time; it and `copies`, which
  /// allocate the host's memory, must outlive the activations.
  Activations(Backend& backend, HostCopies& copies, const Transformer& model, const TensorShard& shard,
              GrowingMemory& workspace)
      : backend_(backend),
        copies_(copies),
        model_(shard_of(model, shard)),
        kinds_(model, shard),
        shard_(shard),
        first_of_vocabulary_(exec::first_of_vocabulary(model, shard)),
        memory_(backend),
        workspace_(workspace) {}

  /// Makes room for the rows of a share, and uploads its ids, targets and positions.
  void begin(const Share& share, const ModelChunk& chunk, const Keeping& keeping = {});
  [[nodiscard]] const Rows& rows() const { return rows_; }
  [[nodiscard]] const ModelChunk& chunk() const { return chunk_; }
  /// The tensors of a layer of the chunk. `index` counts all layers of the model, here and below.
  [[nodiscard]] LayerActivations layer(std::int64_t index) const;
  [[nodiscard]] SharedActivations shared() const;
  [[nodiscard]] std::size_t kind_of(std::int64_t index) const { return place_of(index).kind; }

  /// The copies that bring a layer's offloaded tensors to the host, or back to where layer() says.
  [[nodiscard]] std::vector<HostCopies::Copy> copies(std::int64_t index, HostCopies::Way way) const;

  /// Bytes of all layers of the chunk, on the device (workspace included) and on the host.
  [[nodiscard]] std::size_t layer_bytes() const;
  [[nodiscard]] std::size_t host_bytes() const;

 private:
  using OfElements = void* LayerActivations::*;
  using OfStatistics = float* LayerActivations::*;
  using OfIndices = std::int32_t* LayerActivations::*;
  using Tensor = std::variant<OfElements, OfStatistics, OfIndices>;
  /// Where a tensor lies in all layers of a kind: the i-th of the chunk at begin + (i mod places) x bytes, rounded up.
  struct Home {
    Tensor tensor;
    std::size_t bytes = 0;
    std::string_view kept = {};  ///< The tensor of the model's list with which it is kept (kept_tensors()), ...
    Recompute again = {};        ///< ... or if there is none, the modules whose recomputation makes it.
    bool is_kept = true;         ///< Whether it is kept, and not in the workspace.
    std::int64_t places = 1;
    bool to_host = false;
    std::size_t begin = 0;
    std::size_t host_begin = 0;  ///< Offset in a layer's part of the host's memory.
  };
  /// The layers of one kind in the chunk.
  struct OfKind {
    std::int64_t layers = 0;
    std::vector<Home> homes;
  };
  /// The number of layers of the same kind before a layer of the chunk.
  struct Place {
    std::size_t kind = 0;
    std::int64_t number = 0;
  };
  /// Bytes of `count` elements.
  [[nodiscard]] std::size_t elements(std::int64_t count) const {
    return static_cast<std::size_t>(count) * element_bytes(backend_.element());
  }
  using Take = std::function<std::byte*(std::size_t bytes)>;
  [[nodiscard]] std::vector<Home> layer_tensors(const Transformer& kind) const;
  void add_latents(const Transformer& kind, std::vector<Home>& homes) const;
  void add_mixing(const Transformer& kind, std::vector<Home>& homes) const;
  void add_experts(const Transformer& kind, std::vector<Home>& homes) const;
  /// Columns of tensors that layers of a kind keep if they recompute nothing, together; 0: they have none of them.
  using Names = std::initializer_list<std::string_view>;
  [[nodiscard]] static std::int64_t columns(const Transformer& kind, Names kept);
  /// The most that some kind of layers needs for each row.
  template <class Width>
  [[nodiscard]] std::int64_t widest(Width width) const {
    std::int64_t most = 0;
    for (std::size_t kind = 0; kind < kinds_.count(); ++kind) most = std::max(most, width(kinds_.kind(kind)));
    return rows_.all * most;
  }
  /// What ranks keep of what they trade.
  [[nodiscard]] std::vector<Home> traded_tensors(const Transformer& kind) const;
  /// What the first part of a backward in two leaves to the second.
  [[nodiscard]] std::vector<Home> left_gradients(const Transformer& kind) const;
  /// Which tensors go to the host.
  static void choose_for_host(std::vector<Home>& homes, double share);
  /// All of these, without places.
  [[nodiscard]] std::vector<Home> homes_of(const Transformer& kind, const Keeping& keeping) const;
  void count_layers();
  void lay_out_layers(const Keeping& keeping);
  [[nodiscard]] SharedActivations lay_out_shared(const Take& kept, const Take& in_workspace) const;
  void lay_out_latents(const Take& in_workspace, SharedActivations& shared) const;
  void lay_out_mixing(const Take& in_workspace, SharedActivations& shared) const;
  void lay_out_experts(const Take& in_workspace, SharedActivations& shared) const;
  void reserve_host();
  void upload_tokens(const Share& share);
  [[nodiscard]] const Place& place_of(std::int64_t index) const {
    return places_[static_cast<std::size_t>(index - chunk_.layers.first)];
  }
  [[nodiscard]] std::byte* device_place(const Home& home, std::int64_t index) const;
  [[nodiscard]] std::byte* host_place(const Home& home, std::int64_t index) const;

  Backend& backend_;
  HostCopies& copies_;
  Transformer model_;  ///< The device's shard of the model.
  LayerKinds kinds_;
  TensorShard shard_;
  std::int64_t first_of_vocabulary_;
  Rows rows_;
  std::int64_t attended_rows_ = 0;  ///< Share::attended_rows().
  std::int64_t mixing_chunks_ = 0;  ///< Of linear attention.
  std::int64_t traders_ = 1;        ///< Ranks that trade heads with each other.
  ModelChunk chunk_;
  bool splits_backward_ = false;
  std::vector<OfKind> of_kinds_;
  std::vector<Place> places_;            ///< By layer of the chunk.
  std::size_t kept_by_layers_ = 0;       ///< Bytes of the layers' tensors in memory_, followed by the shared ones, ...
  std::size_t workspace_of_layers_ = 0;  ///< ... and of the workspace.
  std::size_t host_layer_bytes_ = 0;     ///< Bytes per layer on the host.
  GrowingMemory memory_;
  GrowingMemory& workspace_;
  DeviceMemory host_;  ///< Layers one after the other; grows.
  std::size_t host_capacity_ = 0;
};

}  // namespace hdpsim::kernels::exec
