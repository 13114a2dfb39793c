#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "kernels/exec/impl/dense_kernels.h"
#include "kernels/exec/impl/layer_kinds.h"
#include "kernels/exec/share.h"
#include "kernels/ring/shared_mixing.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels::exec {

/// Lightning attention as MiniMax-01 has it (2025, section 2.2), with n the layer's normed input:
///   q, k, v = silu(n W_qkv^T), g = n W_g^T       with DensePart::qkv
///   m       = linear attention of q, k, v        with DensePart::mixing, over the ranks of the group
///   o       = sigmoid(g) norm(m)                 with DensePart::attention_output, before its projection
/// Head h of H forgets by exp(-2^(-8 (h + 1) / H)) a token, the slopes of ALiBi (Press et al. 2022), in every layer
/// alike.
class LayerMixing {
 public:
  /// `pool` has the HDP ranks, `kinds` are those of this device's shard. All references must outlive this.
  LayerMixing(Backend& backend, Transport& pool, const LayerKinds& kinds) : kinds_(kinds), shared_(backend, pool) {}

  /// From now on the group of this share, which must outlive its use.
  void join(const Share& share);
  /// Whether the tokens of a layer are mixed here.
  [[nodiscard]] bool has(std::int64_t layer) const { return kinds_.of(layer).linear.has_value(); }

  void inputs(const LayerWork& work);
  void mix(const LayerWork& work);
  void outputs(const LayerWork& work);
  /// From the gradient of o, in SharedActivations::d_o.
  void outputs_back(const LayerWork& work);
  void mix_back(const LayerWork& work);
  void inputs_back(const LayerWork& work);

  /// The exchange between the ranks of a group; what comes of it is computed behind its end.
  void exchange() { shared_.exchange(); }
  void wait() { shared_.wait(); }
  void finish();

 private:
  void take(const Transformer& kind);

  const LayerKinds& kinds_;
  SharedMixing shared_;
  const Share* share_ = nullptr;
  std::optional<LinearMixing> kind_;  ///< Of the layers for which the group has been joined.
  std::variant<MixingForward, MixingBackward> under_way_;
};

/// Whether linear mixing has the sizes of lightning attention, the one that is executed.
[[nodiscard]] bool is_lightning(const LinearMixing& mixing);

}  // namespace hdpsim::kernels::exec
