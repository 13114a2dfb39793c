#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hdpsim {

/// Mixture-of-experts fields of a model. They are read from every configuration; a study on such a model is refused
/// until its costs are modelled.
struct MixtureOfExperts {
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_hidden = 0;  ///< Inner width of one expert.
  std::int64_t shared_experts = 0;
};

/// The shape of a decoder-only transformer with grouped-query attention.
struct Transformer {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn_hidden = 0;  ///< Inner width of the MLP.
  std::int64_t vocabulary = 0;
  bool gated_mlp = true;  ///< SwiGLU: three matrices; otherwise two.
  bool tied_embeddings = false;
  std::optional<MixtureOfExperts> moe;
  bool biases = false;                 ///< Linear layers and norms have biases (the GPT family).
  std::int64_t learned_positions = 0;  ///< Rows of a learned position embedding; 0 for rotary or ALiBi positions.
};

}  // namespace hdpsim
