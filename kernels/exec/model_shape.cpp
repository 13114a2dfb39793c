#include "kernels/exec/model_shape.h"

#include <initializer_list>
#include <optional>

#include "kernels/exec/impl/hash.h"

namespace hdpsim::kernels::exec {
namespace {

/// Numbers one after the other. The members of a part of a layer are bound by name: one that is added does not compile
/// until it is here.
class Fingerprint {
 public:
  template <class... Numbers>
  void add(Numbers... numbers) {
    ((bits_ = mixed(bits_, static_cast<std::uint64_t>(numbers))), ...);
  }

  void add(const MixtureOfExperts& experts) {
    const auto& [count, per_token, hidden, shared, latent, gate, biases, groups, groups_per_token] = experts;
    add(count, per_token, hidden, shared, latent, gate, biases, groups, groups_per_token);
  }
  void add(const LatentAttention& latent) {
    const auto& [query_rank, kv_rank, rotated] = latent;
    add(query_rank, kv_rank, rotated);
  }
  void add(const KeyIndexer& indexer) {
    const auto& [heads, head_dim, keys, is_shared] = indexer;
    add(heads, head_dim, keys, is_shared);
  }
  void add(const LinearMixing& mixing) {
    const auto& [heads, key_heads, key_dim, value_dim, chunk, inputs, convolved, taps, step_rank, delta_rule,
                 parameters] = mixing;
    add(heads, key_heads, key_dim, value_dim, chunk, inputs, convolved, taps, step_rank, delta_rule, parameters);
  }
  template <class Part>
  void add(const std::optional<Part>& part) {
    add(part.has_value());
    if (part) add(*part);
  }
  void add(const Layer& layer) {
    const auto& [heads, kv_heads, head_dim, value_dim, window, chunk, sinks, gated_output, latent, indexer, linear,
                 ffn_hidden, gated_mlp, moe, biases, qkv_biases, output_bias, qk_norm, norms, joins] = layer;
    add(heads, kv_heads, head_dim, value_dim, window, chunk, sinks, gated_output, ffn_hidden, gated_mlp, biases,
        qkv_biases, output_bias, qk_norm, norms, joins);
    add(latent);
    add(indexer);
    add(linear);
    add(moe);
  }

  [[nodiscard]] std::uint64_t bits() const { return bits_; }

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace

std::uint64_t shape_fingerprint(const Transformer& model) {
  Fingerprint shape;
  shape.add(model.layers, model.hidden, model.vocabulary, model.tied_embeddings, model.predictions,
            model.learned_positions, model.others.size(), model.pattern.size());
  shape.add(static_cast<const Layer&>(model));
  for (const Layer& layer : model.others) shape.add(layer);
  for (const LayerRun& run : model.pattern) shape.add(run.count, run.kind);
  return shape.bits();
}

}  // namespace hdpsim::kernels::exec
