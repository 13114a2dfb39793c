#pragma once

#include "sim/model/impl/architecture.h"

namespace hdpsim::family_keys {

// The keys under which families of models say the same things, for the rows of architectures.cpp.

// ---- Experts

inline constexpr ExpertKeys mixtral_experts{.experts = "num_local_experts"};
inline constexpr ExpertKeys qwen2_experts{.hidden = "moe_intermediate_size",
                                          .shared_hidden = "shared_expert_intermediate_size",
                                          .shared_gate = true,
                                          .period = "decoder_sparse_step",
                                          .offset = -1};
inline constexpr ExpertKeys qwen3_experts{
    .hidden = "moe_intermediate_size", .period = "decoder_sparse_step", .offset = -1};
inline constexpr ExpertKeys deepseek_experts{.experts = "n_routed_experts",
                                             .hidden = "moe_intermediate_size",
                                             .shared = "n_shared_experts",
                                             .leading_dense = "first_k_dense_replace",
                                             .period = "moe_layer_freq"};
inline constexpr ExpertKeys olmoe_experts{};
inline constexpr ExpertKeys ling_experts{
    .hidden = "moe_intermediate_size", .shared = "num_shared_experts", .leading_dense = "first_k_dense_replace"};
inline constexpr ExpertKeys hunyuan_experts{
    .per_token = "moe_topk", .hidden = "moe_intermediate_size", .shared = "num_shared_expert"};
inline constexpr ExpertKeys ernie_experts{.experts = "moe_num_experts",
                                          .per_token = "moe_k",
                                          .hidden = "moe_intermediate_size",
                                          .shared = "moe_num_shared_experts",
                                          .leading_dense = "moe_layer_start_index",
                                          .period = "moe_layer_interval",
                                          .offset = -1};
inline constexpr ExpertKeys llama4_experts{.experts = "num_local_experts",
                                           .shared_always = 1,
                                           .dense_hidden = "intermediate_size_mlp",
                                           .period = "interleave_moe_layer_step",
                                           .offset = -1};
inline constexpr ExpertKeys dbrx_experts{.experts = "moe_num_experts", .per_token = "moe_top_k"};
// Beside its experts every layer has an MLP: in Arctic as wide as the hidden states, in Grok-2 of a width of its own.
inline constexpr ExpertKeys arctic_experts{.experts = "num_local_experts",
                                           .shared_hidden = "hidden_size",
                                           .shared_switch = "parallel_attn_mlp_res",
                                           .period = "moe_layer_frequency",
                                           .usual_period = 2,
                                           .offset = -1};
inline constexpr ExpertKeys grok2_experts{.experts = "num_local_experts",
                                          .hidden = "moe_intermediate_size",
                                          .shared_hidden = "intermediate_size",
                                          .shared_switch = "residual_moe"};
inline constexpr ExpertKeys gpt_oss_experts{.experts = "num_local_experts", .biases = true};
inline constexpr ExpertKeys minimax_experts{.experts = "num_local_experts",
                                            .shared_hidden = "shared_intermediate_size"};
inline constexpr ExpertKeys granite_experts{
    .experts = "num_local_experts", .shared_hidden = "shared_intermediate_size", .shared_is_mlp = true};
inline constexpr ExpertKeys jamba_experts{
    .least = 2, .period = "expert_layer_period", .usual_period = 2, .offset_key = "expert_layer_offset", .offset = 1};
inline constexpr ExpertKeys nemotron_experts{.experts = "n_routed_experts",
                                             .hidden = "moe_intermediate_size",
                                             .shared_hidden = "moe_shared_expert_intermediate_size",
                                             .shared_again = "n_shared_experts",
                                             .latent = "moe_latent_size"};

inline constexpr ExpertKeys step_experts{.experts = "moe_num_experts",
                                         .per_token = "moe_top_k",
                                         .hidden = "moe_intermediate_size",
                                         .shared_hidden = "share_expert_dim",
                                         .listed = "moe_layers_enum"};

inline constexpr ExpertKeys afmoe_experts{
    .hidden = "moe_intermediate_size", .shared = "num_shared_experts", .leading_dense = "num_dense_layers"};
inline constexpr ExpertKeys lfm2_experts{.hidden = "moe_intermediate_size", .leading_dense = "num_dense_layers"};
inline constexpr ExpertKeys kimi_linear_experts{.per_token = "num_experts_per_token",
                                                .hidden = "moe_intermediate_size",
                                                .shared = "num_shared_experts",
                                                .groups = "num_expert_group",
                                                .leading_dense = "first_k_dense_replace",
                                                .period = "moe_layer_freq"};
inline constexpr ExpertKeys exaone_experts{.hidden = "moe_intermediate_size",
                                           .shared = "num_shared_experts",
                                           .leading_dense = "first_k_dense_replace",
                                           .period = "is_moe_layer"};
// A layer has two attentions with an MLP behind each, and experts beside the first MLP, which read the same
// (Meituan 2025, LongCat-Flash, arXiv 2509.01322, section 2.2): the first half has a shared expert as wide as that MLP.
inline constexpr ExpertKeys longcat_experts{.experts = "n_routed_experts",
                                            .per_token = "moe_topk",
                                            .hidden = "expert_ffn_hidden_size",
                                            .shared_hidden = "ffn_hidden_size",
                                            .idle = "zero_expert_num",
                                            .usual_period = 2};

// ---- Which layers see which tokens

inline constexpr MixerKeys windows{.others = Mixer::window};
inline constexpr MixerKeys qwen2_window{.others = Mixer::window,
                                        .window_switch = "use_sliding_window",
                                        .window_off = true,
                                        .first_window = "max_window_layers"};
inline constexpr MixerKeys alternating_window{.others = Mixer::window, .usual_period = 2};
inline constexpr MixerKeys exaone_window{
    .others = Mixer::window, .period = "sliding_window_pattern", .usual_period = 4};
inline constexpr MixerKeys gemma3_window{
    .others = Mixer::window, .period = "sliding_window_pattern", .usual_period = 6, .usual_window = 4096};
inline constexpr MixerKeys cohere2_window{
    .others = Mixer::window, .period = "sliding_window_pattern", .usual_period = 4, .usual_window = 4096};
inline constexpr MixerKeys llama4_chunks{
    .others = Mixer::chunk, .usual_period = 4, .list = "no_rope_layers", .full_number = 0};
inline constexpr MixerKeys qwen3_next_mixers{
    .others = Mixer::linear, .period = "full_attention_interval", .usual_period = 4};
inline constexpr MixerKeys minimax_m2_mixers{.others = Mixer::linear, .usual_period = 1, .list = "attn_type_list"};
inline constexpr MixerKeys minimax_mixers{.others = Mixer::linear, .usual_period = 8, .list = "attn_type_list"};
inline constexpr MixerKeys minimax_words{.others = Mixer::linear, .usual_period = 2, .offset = 0};
inline constexpr MixerKeys granite_mixers{.others = Mixer::linear};
inline constexpr MixerKeys bamba_mixers{.others = Mixer::linear, .full_layers = "attn_layer_indices"};
inline constexpr MixerKeys jamba_mixers{.others = Mixer::linear,
                                        .period = "attn_layer_period",
                                        .usual_period = 8,
                                        .offset_key = "attn_layer_offset",
                                        .offset = 4};
inline constexpr MixerKeys nemotron_mixers{
    .others = Mixer::linear, .letters = "hybrid_override_pattern", .module_letters = "mtp_hybrid_override_pattern"};

inline constexpr MixerKeys afmoe_window{
    .others = Mixer::window, .period = "global_attn_every_n_layers", .usual_period = 4};
inline constexpr MixerKeys mimo_window{.others = Mixer::window, .list = "hybrid_layer_pattern", .full_number = 0};
inline constexpr MixerKeys lfm2_mixers{.others = Mixer::linear, .full_layers = "full_attn_idxs", .own_word = "conv"};
inline constexpr MixerKeys kimi_linear_mixers{
    .others = Mixer::linear, .full_layers = "linear_attn_config.full_attn_layers", .first_place = 1};

inline constexpr WindowHeads step_heads{.map = "attention_other_setting",
                                        .heads = "num_attention_heads",
                                        .kv_heads = "num_attention_groups",
                                        .head_dim = "head_dim"};
inline constexpr WindowHeads mimo_heads{.heads = "swa_num_attention_heads",
                                        .kv_heads = "swa_num_key_value_heads",
                                        .head_dim = "swa_head_dim",
                                        .value_dim = "swa_v_head_dim",
                                        .sinks = {.usual = true, .key = "add_swa_attention_sink_bias"}};

// ---- Linear mixing

inline constexpr LinearKeys gated_delta{.kind = LinearKind::gated_delta,
                                        .heads = "linear_num_value_heads",
                                        .key_heads = "linear_num_key_heads",
                                        .key_dim = "linear_key_head_dim",
                                        .value_dim = "linear_value_head_dim",
                                        .taps = "linear_conv_kernel_dim",
                                        .usual_chunk = 64};
inline constexpr LinearKeys lightning_keys{.kind = LinearKind::lightning, .usual_chunk = 256};
inline constexpr LinearKeys jamba_mamba{.kind = LinearKind::mamba,
                                        .key_dim = "mamba_d_state",
                                        .taps = "mamba_d_conv",
                                        .expand = "mamba_expand",
                                        .step_rank = "mamba_dt_rank",
                                        .usual_chunk = 1};
inline constexpr LinearKeys nemotron_mamba{.kind = LinearKind::mamba2,
                                           .heads = "mamba_num_heads",
                                           .key_heads = "n_groups",
                                           .key_dim = "ssm_state_size",
                                           .value_dim = "mamba_head_dim",
                                           .taps = "conv_kernel",
                                           .chunk = "chunk_size",
                                           .usual_chunk = 128};
inline constexpr LinearKeys granite_mamba{.kind = LinearKind::mamba2,
                                          .heads = "mamba_n_heads",
                                          .key_heads = "mamba_n_groups",
                                          .key_dim = "mamba_d_state",
                                          .value_dim = "mamba_d_head",
                                          .taps = "mamba_d_conv",
                                          .expand = "mamba_expand",
                                          .chunk = "mamba_chunk_size",
                                          .usual_chunk = 256};

inline constexpr LinearKeys kimi_delta{.kind = LinearKind::kimi_delta,
                                       .heads = "linear_attn_config.num_heads",
                                       .key_dim = "linear_attn_config.head_dim",
                                       .taps = "linear_attn_config.short_conv_kernel_size",
                                       .usual_chunk = 64};
inline constexpr LinearKeys short_convolution{
    .kind = LinearKind::convolution, .taps = "conv_L_cache", .usual_chunk = 1, .biases = "conv_bias"};

// ---- Widths

inline constexpr WidthKeys no_groups{.kv_heads = {}};
inline constexpr WidthKeys gpt2_widths{.hidden = {"n_embd"},
                                       .layers = {"n_layer"},
                                       .heads = {"n_head"},
                                       .kv_heads = {},
                                       .ffn = {"n_inner"},
                                       .positions = "n_positions",
                                       .ffn_ratio = 4};
inline constexpr WidthKeys mpt_widths{.hidden = {"d_model"},
                                      .layers = {"n_layers"},
                                      .heads = {"n_heads"},
                                      .kv_heads = {},
                                      .ffn = {},
                                      .positions = "max_seq_len",
                                      .ffn_ratio = 4,
                                      .ffn_ratio_key = "expansion_ratio"};
inline constexpr WidthKeys dbrx_widths{.hidden = {"d_model"},
                                       .layers = {"n_layers"},
                                       .heads = {"n_heads"},
                                       .kv_heads = {"kv_n_heads", 1},
                                       .ffn = {"ffn_hidden_size"}};
inline constexpr WidthKeys qwen1_widths{.kv_heads = {}, .head_dim = {"kv_channels"}, .ffn_matrices = 2};
inline constexpr WidthKeys gptj_widths{.hidden = {"n_embd"},
                                       .layers = {"n_layer"},
                                       .heads = {"n_head"},
                                       .kv_heads = {},
                                       .ffn = {"n_inner"},
                                       .ffn_ratio = 4};
inline constexpr WidthKeys falcon_widths{.kv_heads = {"num_kv_heads"}, .ffn = {"ffn_hidden_size"}, .ffn_ratio = 4};
inline constexpr WidthKeys chatglm_widths{.layers = {"num_layers"},
                                          .kv_heads = {"multi_query_group_num"},
                                          .head_dim = {"kv_channels"},
                                          .ffn = {"ffn_hidden_size"},
                                          .vocabulary = {"padded_vocab_size"}};
inline constexpr WidthKeys opt_widths{.kv_heads = {}, .ffn = {"ffn_dim"}, .positions = "max_position_embeddings"};
inline constexpr WidthKeys bloom_widths{.hidden = {"hidden_size", 0, "n_embed"},
                                        .layers = {"n_layer", 0, "num_hidden_layers"},
                                        .heads = {"n_head", 0, "num_attention_heads"},
                                        .kv_heads = {},
                                        .ffn = {"n_inner"},
                                        .ffn_ratio = 4};
inline constexpr WidthKeys exaone3_widths{.layers = {"num_layers"}};
// What files may leave out (transformers, the configuration class of the family).
inline constexpr WidthKeys eight_kv_heads{.kv_heads = {"num_key_value_heads", 8}};
inline constexpr WidthKeys gpt_oss_widths{.kv_heads = {"num_key_value_heads", 8}, .head_dim = {"head_dim", 64}};
inline constexpr WidthKeys mimo_widths{.value_dim = "v_head_dim"};
inline constexpr WidthKeys lfm2_widths{.ffn = {"block_ff_dim", 0, "intermediate_size"}, .ffn_block = 256};
// Files of transformers count both halves of a layer under `num_hidden_layers`.
inline constexpr WidthKeys longcat_widths{.layers = {"num_layers"}, .ffn = {"ffn_hidden_size"}};
inline constexpr WidthKeys step_widths{.kv_heads = {"num_attention_groups"}, .query_latent = "share_q_dim"};
inline constexpr WidthKeys qwen3_widths{.kv_heads = {"num_key_value_heads", 32}, .head_dim = {"head_dim", 128}};
inline constexpr WidthKeys gemma_widths{.kv_heads = {"num_key_value_heads", 16}, .head_dim = {"head_dim", 256}};
inline constexpr WidthKeys gemma2_widths{.kv_heads = {"num_key_value_heads", 4}, .head_dim = {"head_dim", 256}};
inline constexpr WidthKeys gemma3_widths{.heads = {"num_attention_heads", 8},
                                         .kv_heads = {"num_key_value_heads", 4},
                                         .head_dim = {"head_dim", 256},
                                         .vocabulary = {"vocab_size", 262'208}};

inline constexpr Trait always{.usual = true};
inline constexpr Trait attention_bias{.key = "attention_bias"};
inline constexpr Trait gate{.usual = true, .key = "attn_output_gate"};

}  // namespace hdpsim::family_keys
