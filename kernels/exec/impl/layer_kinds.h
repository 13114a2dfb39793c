#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/exec/parameter_tensors.h"
#include "kernels/spec/attention.h"
#include "sim/model/layers.h"
#include "sim/model/transformer.h"

namespace hdpsim::kernels::exec {

/// The heads of a layer's attention; none where its tokens are mixed in linear time.
[[nodiscard]] inline AttentionHeads heads_of(const Layer& layer) {
  if (layer.linear) return {};
  return {.heads = layer.heads,
          .kv_heads = layer.kv_heads,
          .dim = layer.head_dim,
          .scale = 1 / std::sqrt(static_cast<float>(layer.head_dim)),
          .value_dim = layer.value_dim};
}

/// The kinds of layers of a device's shard of a model, and which layer is of which.
class LayerKinds {
 public:
  /// `model` is the whole model.
  LayerKinds(const Transformer& model, const TensorShard& shard) : kinds_(of_each_kind(shard_of(model, shard))) {
    if (model.pattern.empty()) kind_of_.assign(static_cast<std::size_t>(model.layers), 0);
    for (const LayerRun& run : model.pattern) {
      kind_of_.insert(kind_of_.end(), static_cast<std::size_t>(run.count), run.kind);
    }
  }

  [[nodiscard]] std::size_t count() const { return kinds_.size(); }
  /// The shard with all of its layers of one kind.
  [[nodiscard]] const Transformer& kind(std::size_t kind) const { return kinds_[kind]; }
  [[nodiscard]] std::size_t kind_of(std::int64_t layer) const { return kind_of_[static_cast<std::size_t>(layer)]; }
  [[nodiscard]] const Transformer& of(std::int64_t layer) const { return kinds_[kind_of(layer)]; }

 private:
  std::vector<Transformer> kinds_;
  std::vector<std::size_t> kind_of_;  ///< By layer.
};

}  // namespace hdpsim::kernels::exec
