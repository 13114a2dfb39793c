#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hdpsim {

/// The MLP of layers whose tokens each go through a few of many experts (Shazeer et al. 2017; Fedus et al. 2022).
struct MixtureOfExperts {
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;  ///< Top-k: every token takes this many different experts.
  std::int64_t expert_hidden = 0;      ///< Inner width of one expert.
  std::int64_t shared_hidden = 0;      ///< Inner width of all shared experts together; 0: none.
  /// Width of what experts read and write, if not that of the hidden states: a product narrows tokens before they
  /// travel to their experts, and another widens what comes back (Nemotron 3 Super). 0: there are no such products.
  std::int64_t latent = 0;
  bool shared_gate = false;  ///< A gate with a weight per hidden column scales the shared experts' output.
  bool biases = false;       ///< The router and the experts' products have biases (gpt-oss).
  /// The router picks the experts of a token from `groups_per_token` of `groups` equal groups of consecutive experts
  /// (DeepSeek-AI 2024, arXiv 2405.04434, section 2.2.2); by default all experts are one group.
  std::int64_t groups = 1;
  std::int64_t groups_per_token = 1;
  friend bool operator==(const MixtureOfExperts&, const MixtureOfExperts&) = default;
};

/// How queries, keys and values are made through narrow latents: multi-head latent attention (DeepSeek-V2, 2024,
/// section 2.1). In training keys and values are expanded for every head before attention.
struct LatentAttention {
  std::int64_t query_rank = 0;  ///< Width of the latent of queries; 0: they are projected directly.
  std::int64_t kv_rank = 0;     ///< Width of the latent of keys and values.
  std::int64_t rotated = 0;     ///< Columns of a query or key that rotate; all heads share those of the key.
  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

/// What chooses the keys that a query attends to: heads of small queries score all tokens before by one small key of
/// each, and attention sees the `keys` tokens of the highest scores (DeepSeek sparse attention: DeepSeek-AI 2025,
/// DeepSeek-V3.2-Exp, section 2.1). Attention then is to latents, which all heads share, and not to expanded keys and
/// values: no two queries expand the same ones.
struct KeyIndexer {
  std::int64_t heads = 0;  ///< 0: the layer has no scores of its own, and takes the choice of the layer before it.
  std::int64_t head_dim = 0;
  std::int64_t keys = 0;   ///< Chosen by a query.
  bool is_shared = false;  ///< Other layers take its choice, and need it before it is computed again.
  friend bool operator==(const KeyIndexer&, const KeyIndexer&) = default;
};

/// Token mixing in linear time: every head carries a state of key_dim x value_dim from token to token. Lightning
/// attention, gated delta nets and Mamba-2 compute it in chunks, by matrix products (see mixing_products()); Mamba-1 is
/// a scan, token by token.
struct LinearMixing {
  std::int64_t heads = 0;
  std::int64_t key_heads = 0;  ///< Different keys and queries; a divisor of heads.
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t chunk = 0;       ///< Tokens whose products are computed together; 1: a scan.
  std::int64_t inputs = 0;      ///< Columns of the input projection: queries, keys, values, gates and decays.
  std::int64_t convolved = 0;   ///< Columns of these that a causal convolution passes over ...
  std::int64_t taps = 0;        ///< ... with so many weights a column.
  std::int64_t step_rank = 0;   ///< Mamba-1: the rank through which each channel's step is made; 0: none.
  bool delta_rule = false;      ///< The state forgets what a key held before it is written (gated delta net).
  std::int64_t parameters = 0;  ///< Parameters besides projections and convolution: decays, biases, norms.
  friend bool operator==(const LinearMixing&, const LinearMixing&) = default;
};

/// What one layer is: how its tokens see each other, and its MLP.
struct Layer {
  std::int64_t heads = 0;  ///< Heads of queries; 0: the layer has no attention.
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;   ///< Width of a head's queries and keys.
  std::int64_t value_dim = 0;  ///< Width of a head's values; 0: head_dim.
  /// Width of a latent with a norm through which queries are made: multi-matrix factorization attention (Step-3,
  /// StepFun 2025, arXiv 2507.19427, section 3.1); 0: they are projected directly. LatentAttention has a latent of its
  /// own.
  std::int64_t query_latent = 0;
  /// A token sees itself and the window - 1 tokens before it; 0: all before it.
  std::int64_t window = 0;
  /// Sequences are cut into chunks, and a token sees those before it in its chunk (Llama 4); 0: they are not.
  std::int64_t attention_chunk = 0;
  bool repeats_keys = false;  ///< The attention kernel has a copy of keys and values for each head of queries.
  bool sinks = false;         ///< Each head has a learned score that takes part in the softmax (gpt-oss).
  bool gated_output = false;  ///< A gate as wide as the queries scales attention's output (Qwen3-Next).
  std::optional<LatentAttention> latent = {};
  std::optional<KeyIndexer> indexer = {};   ///< Only with latents.
  std::optional<LinearMixing> linear = {};  ///< In place of attention.
  std::int64_t ffn_hidden = 0;              ///< Inner width of the MLP; 0 and no experts: the layer has none.
  bool gated_mlp = true;                    ///< SwiGLU: three matrices; otherwise two.
  std::optional<MixtureOfExperts> moe = {};
  bool biases = false;       ///< Linear layers and norms have biases (the GPT family).
  bool qkv_biases = false;   ///< The QKV projection has biases (Qwen2) ...
  bool output_bias = false;  ///< ... and attention's output (gpt-oss).
  bool qk_norm = false;      ///< A norm of each head of queries and keys (Qwen3).
  /// Norms of the residual stream: two, one if both branches read the same or there is one branch, four if the
  /// branches' outputs have norms too (Gemma).
  std::int64_t norms = 2;
  /// The layer predicts tokens further on: before it, a product joins the stream with the embedding of the next token,
  /// each behind a norm (multi-token prediction, DeepSeek-V3, 2024, section 2.2).
  bool joins = false;
  friend bool operator==(const Layer&, const Layer&) = default;
};

/// Layers of one kind: 0 is the model's own Layer, k the k-th of its others.
struct LayerRun {
  std::int64_t count = 0;
  std::size_t kind = 0;
  friend bool operator==(const LayerRun&, const LayerRun&) = default;
};

/// The shape of a decoder-only model: the width and the tables that all of its layers share, and its layers. These are
/// all alike, or of a few kinds in a pattern. What a function says of "a layer" of a model is said of kind 0; of_kind()
/// gives the model whose layers are all of another kind. Where some layers have experts, kind 0 does.
struct Transformer : Layer {
  std::string name = {};
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;
  bool tied_embeddings = false;
  std::int64_t predictions = 1;        ///< Tokens that each token predicts: passes through the head, and losses.
  std::int64_t learned_positions = 0;  ///< Rows of a learned position embedding; 0 for rotary or ALiBi positions.
  /// Bytes of an element of activations, and of parameters as the products read them: bf16 2, fp32 4.
  std::int64_t element_bytes = 2;
  std::vector<Layer> others = {};      ///< Kinds of layers besides the model's own.
  std::vector<LayerRun> pattern = {};  ///< All layers in their order, neighbours of one kind in one run; empty: alike.
  std::vector<std::string> left_out = {};  ///< Parts that the configuration has and the model has not, for people.
};

}  // namespace hdpsim
