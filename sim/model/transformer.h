#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hdpsim {

/// The MLP of layers whose tokens each go through a few of many experts (Shazeer et al. 2017; Fedus et al. 2022).
struct MixtureOfExperts {
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;      ///< Top-k: every token takes this many different experts.
  std::int64_t expert_hidden = 0;          ///< Inner width of one expert.
  std::int64_t shared_hidden = 0;          ///< Inner width of all shared experts together; 0: none.
  bool shared_gate = false;                ///< A gate with a weight per hidden column scales the shared experts'
                                           ///< output.
  std::vector<std::int64_t> dense_layers;  ///< Layers that have a dense MLP instead, ascending.
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
  bool qkv_biases = false;             ///< The QKV projection alone has biases (Qwen2).
  bool qk_norm = false;                ///< A norm of each head of queries and keys (Qwen3).
  /// Bytes of an element of activations, and of parameters as the products read them: bf16 2, fp32 4.
  std::int64_t element_bytes = 2;
};

}  // namespace hdpsim
