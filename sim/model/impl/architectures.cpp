#include "sim/model/impl/architecture.h"

namespace hdpsim {
namespace {

// ---- Experts

constexpr ExpertKeys mixtral_experts{.experts = "num_local_experts"};
constexpr ExpertKeys qwen2_experts{.hidden = "moe_intermediate_size",
                                   .shared_hidden = "shared_expert_intermediate_size",
                                   .shared_gate = true,
                                   .period = "decoder_sparse_step",
                                   .offset = -1};
constexpr ExpertKeys qwen3_experts{.hidden = "moe_intermediate_size", .period = "decoder_sparse_step", .offset = -1};
constexpr ExpertKeys deepseek_experts{.experts = "n_routed_experts",
                                      .hidden = "moe_intermediate_size",
                                      .shared = "n_shared_experts",
                                      .leading_dense = "first_k_dense_replace",
                                      .period = "moe_layer_freq"};
constexpr ExpertKeys llama4_experts{.experts = "num_local_experts",
                                    .shared_always = 1,
                                    .dense_hidden = "intermediate_size_mlp",
                                    .period = "interleave_moe_layer_step",
                                    .offset = -1};
constexpr ExpertKeys gpt_oss_experts{.experts = "num_local_experts", .biases = true};
constexpr ExpertKeys minimax_experts{.experts = "num_local_experts", .shared_hidden = "shared_intermediate_size"};
constexpr ExpertKeys jamba_experts{
    .period = "expert_layer_period", .usual_period = 2, .offset_key = "expert_layer_offset", .offset = 1};
constexpr ExpertKeys nemotron_experts{.experts = "n_routed_experts",
                                      .hidden = "moe_intermediate_size",
                                      .shared_hidden = "moe_shared_expert_intermediate_size"};

// ---- Which layers see which tokens

constexpr MixerKeys window{.others = Mixer::window};
constexpr MixerKeys qwen2_window{.others = Mixer::window,
                                 .window_switch = "use_sliding_window",
                                 .window_off = true,
                                 .first_window = "max_window_layers"};
constexpr MixerKeys alternating_window{.others = Mixer::window, .usual_period = 2};
constexpr MixerKeys gemma3_window{
    .others = Mixer::window, .period = "sliding_window_pattern", .usual_period = 6, .usual_window = 4096};
constexpr MixerKeys cohere2_window{
    .others = Mixer::window, .period = "sliding_window_pattern", .usual_period = 4, .usual_window = 4096};
constexpr MixerKeys llama4_chunks{
    .others = Mixer::chunk, .usual_period = 4, .list = "no_rope_layers", .full_number = 0};
constexpr MixerKeys qwen3_next_mixers{.others = Mixer::linear, .period = "full_attention_interval", .usual_period = 4};
constexpr MixerKeys minimax_mixers{.others = Mixer::linear, .usual_period = 8, .list = "attn_type_list"};
constexpr MixerKeys jamba_mixers{.others = Mixer::linear,
                                 .period = "attn_layer_period",
                                 .usual_period = 8,
                                 .offset_key = "attn_layer_offset",
                                 .offset = 4};
constexpr MixerKeys nemotron_mixers{.others = Mixer::linear, .letters = "hybrid_override_pattern"};

// ---- Linear mixing

constexpr LinearKeys gated_delta{.kind = LinearKind::gated_delta,
                                 .heads = "linear_num_value_heads",
                                 .key_heads = "linear_num_key_heads",
                                 .key_dim = "linear_key_head_dim",
                                 .value_dim = "linear_value_head_dim",
                                 .taps = "linear_conv_kernel_dim",
                                 .usual_chunk = 64};
constexpr LinearKeys lightning{.kind = LinearKind::lightning, .usual_chunk = 256};
constexpr LinearKeys jamba_mamba{.kind = LinearKind::mamba,
                                 .key_dim = "mamba_d_state",
                                 .taps = "mamba_d_conv",
                                 .expand = "mamba_expand",
                                 .step_rank = "mamba_dt_rank",
                                 .usual_chunk = 1};
constexpr LinearKeys nemotron_mamba{.kind = LinearKind::mamba2,
                                    .heads = "mamba_num_heads",
                                    .key_heads = "n_groups",
                                    .key_dim = "ssm_state_size",
                                    .value_dim = "mamba_head_dim",
                                    .taps = "conv_kernel",
                                    .chunk = "chunk_size",
                                    .usual_chunk = 128};
constexpr LinearKeys granite_mamba{.kind = LinearKind::mamba2,
                                   .heads = "mamba_n_heads",
                                   .key_heads = "mamba_n_groups",
                                   .key_dim = "mamba_d_state",
                                   .value_dim = "mamba_d_head",
                                   .taps = "mamba_d_conv",
                                   .chunk = "mamba_chunk_size",
                                   .usual_chunk = 256};

// ---- Widths

constexpr WidthKeys no_groups{.kv_heads = {}};
constexpr WidthKeys gpt2_widths{.hidden = {"n_embd"},
                                .layers = {"n_layer"},
                                .heads = {"n_head"},
                                .kv_heads = {},
                                .ffn = {"n_inner"},
                                .positions = "n_positions",
                                .ffn_ratio = 4};
constexpr WidthKeys mpt_widths{.hidden = {"d_model"},
                               .layers = {"n_layers"},
                               .heads = {"n_heads"},
                               .kv_heads = {},
                               .ffn = {},
                               .positions = "max_seq_len",
                               .ffn_ratio = 4,
                               .ffn_ratio_key = "expansion_ratio"};
constexpr WidthKeys falcon_widths{.kv_heads = {"num_kv_heads"}, .ffn = {"ffn_hidden_size"}, .ffn_ratio = 4};
constexpr WidthKeys chatglm_widths{.layers = {"num_layers"},
                                   .kv_heads = {"multi_query_group_num"},
                                   .head_dim = {"kv_channels"},
                                   .ffn = {"ffn_hidden_size"},
                                   .vocabulary = {"padded_vocab_size"}};
// What the files of small models leave out (transformers, Gemma3TextConfig).
constexpr WidthKeys gemma3_widths{.heads = {"num_attention_heads", 8},
                                  .kv_heads = {"num_key_value_heads", 4},
                                  .head_dim = {"head_dim", 256},
                                  .vocabulary = {"vocab_size", 262'208}};

constexpr Trait always{.usual = true};
constexpr Trait attention_bias{.key = "attention_bias"};

}  // namespace

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = {
      {.name = "LlamaForCausalLM", .qkv_biases = attention_bias, .note = "Llama 2, 3; Yi; SmolLM"},
      {.name = "Llama4ForConditionalGeneration",
       .qkv_biases = attention_bias,
       .experts = &llama4_experts,
       .mixers = llama4_chunks,
       .inside = "text_config",
       .note = "Llama 4 Scout, Maverick"},
      {.name = "Llama4ForCausalLM", .experts = &llama4_experts, .mixers = llama4_chunks, .note = "Llama 4, text alone"},
      {.name = "MistralForCausalLM", .mixers = window, .note = "Mistral, Mistral Large"},
      {.name = "Mistral3ForConditionalGeneration",
       .widths = {.heads = {"num_attention_heads", 32}, .head_dim = {"head_dim", 128}},
       .mixers = window,
       .inside = "text_config",
       .note = "Mistral Small 3.1, 3.2"},
      {.name = "MixtralForCausalLM", .experts = &mixtral_experts, .mixers = window, .note = "Mixtral 8x7B, 8x22B"},
      {.name = "Qwen2ForCausalLM", .qkv_biases = always, .mixers = qwen2_window, .note = "Qwen 2, 2.5; QwQ"},
      {.name = "Qwen2MoeForCausalLM",
       .qkv_biases = always,
       .experts = &qwen2_experts,
       .mixers = qwen2_window,
       .note = "Qwen 1.5 MoE, Qwen2-57B-A14B"},
      {.name = "Qwen3ForCausalLM",
       .qkv_biases = attention_bias,
       .qk_norm = always,
       .mixers = qwen2_window,
       .note = "Qwen 3, dense"},
      {.name = "Qwen3MoeForCausalLM",
       .qkv_biases = attention_bias,
       .qk_norm = always,
       .experts = &qwen3_experts,
       .mixers = qwen2_window,
       .note = "Qwen3-30B-A3B, 235B-A22B, Coder"},
      {.name = "Qwen3NextForCausalLM",
       .qkv_biases = attention_bias,
       .qk_norm = always,
       .gated_output = true,
       .experts = &qwen2_experts,
       .mixers = qwen3_next_mixers,
       .linear = gated_delta,
       .note = "Qwen3-Next-80B-A3B"},
      {.name = "DeepseekForCausalLM", .experts = &deepseek_experts, .note = "DeepSeek-MoE"},
      {.name = "DeepseekV2ForCausalLM", .experts = &deepseek_experts, .note = "DeepSeek-V2, V2-Lite, V2.5"},
      {.name = "DeepseekV3ForCausalLM", .experts = &deepseek_experts, .note = "DeepSeek-V3, R1; Kimi K2; Moonlight"},
      {.name = "GptOssForCausalLM",
       .qkv_biases = {.usual = true, .key = "attention_bias"},
       .output_bias = true,
       .sinks = true,
       .experts = &gpt_oss_experts,
       .mixers = alternating_window,
       .note = "gpt-oss-20b, 120b"},
      {.name = "Gemma2ForCausalLM",
       .qkv_biases = attention_bias,
       .norms = 4,
       .tied = true,
       .mixers = alternating_window,
       .note = "Gemma 2"},
      {.name = "Gemma3ForCausalLM",
       .widths = gemma3_widths,
       .qkv_biases = attention_bias,
       .qk_norm = always,
       .norms = 4,
       .tied = true,
       .mixers = gemma3_window,
       .note = "Gemma 3 270M, 1B"},
      {.name = "Gemma3ForConditionalGeneration",
       .widths = gemma3_widths,
       .qkv_biases = attention_bias,
       .qk_norm = always,
       .norms = 4,
       .tied = true,
       .mixers = gemma3_window,
       .inside = "text_config",
       .note = "Gemma 3 4B, 12B, 27B"},
      {.name = "ChatGLMModel", .widths = chatglm_widths, .qkv_biases = {.key = "add_qkv_bias"}, .note = "GLM-4-9B"},
      {.name = "GlmForCausalLM", .qkv_biases = attention_bias, .note = "GLM-4-9B, newer files"},
      {.name = "Glm4ForCausalLM", .qkv_biases = attention_bias, .norms = 4, .note = "GLM-4-32B, GLM-Z1"},
      {.name = "Glm4MoeForCausalLM",
       .qkv_biases = attention_bias,
       .qk_norm = {.key = "use_qk_norm"},
       .experts = &deepseek_experts,
       .note = "GLM-4.5, 4.5-Air, 4.6"},
      {.name = "Phi3ForCausalLM", .mixers = window, .note = "Phi-3, Phi-3.5, Phi-4"},
      {.name = "PhiMoEForCausalLM",
       .qkv_biases = attention_bias,
       .output_bias = true,
       .experts = &mixtral_experts,
       .mixers = window,
       .note = "Phi-3.5-MoE"},
      {.name = "Olmo2ForCausalLM", .qkv_biases = attention_bias, .qk_norm = always, .note = "OLMo 2"},
      {.name = "Olmo3ForCausalLM",
       .qkv_biases = attention_bias,
       .qk_norm = always,
       .mixers = {.others = Mixer::window, .usual_period = 4},
       .note = "OLMo 3"},
      {.name = "FalconForCausalLM",
       .widths = falcon_widths,
       .gated_mlp = false,
       .biases = {.key = "bias"},
       .tied = true,
       .note = "Falcon 7B, 40B, 180B"},
      {.name = "CohereForCausalLM",
       .qkv_biases = attention_bias,
       .qk_norm = {.key = "use_qk_norm"},
       .norms = 1,
       .tied = true,
       .note = "Command-R, R+; Aya"},
      {.name = "Cohere2ForCausalLM",
       .qkv_biases = attention_bias,
       .norms = 1,
       .tied = true,
       .mixers = cohere2_window,
       .note = "Command-A, R7B"},
      {.name = "MiniMaxText01ForCausalLM",
       .experts = &minimax_experts,
       .mixers = minimax_mixers,
       .linear = lightning,
       .note = "MiniMax-Text-01"},
      {.name = "MiniMaxM1ForCausalLM",
       .experts = &minimax_experts,
       .mixers = minimax_mixers,
       .linear = lightning,
       .note = "MiniMax-M1"},
      {.name = "NemotronHForCausalLM",
       .widths = {.head_dim = {"attention_head_dim"}},
       .gated_mlp = false,
       .qkv_biases = attention_bias,
       .norms = 1,
       .experts = &nemotron_experts,
       .mixers = nemotron_mixers,
       .linear = nemotron_mamba,
       .note = "Nemotron-H, Nemotron Nano 2, 3"},
      {.name = "JambaForCausalLM",
       .experts = &jamba_experts,
       .mixers = jamba_mixers,
       .linear = jamba_mamba,
       .note = "Jamba, 1.5, 1.6"},
      {.name = "GraniteForCausalLM", .qkv_biases = attention_bias, .tied = true, .note = "Granite 3"},
      {.name = "GraniteMoeForCausalLM",
       .qkv_biases = attention_bias,
       .tied = true,
       .experts = &mixtral_experts,
       .note = "Granite 3, 1B-A400M and 3B-A800M"},
      {.name = "GraniteMoeHybridForCausalLM",
       .qkv_biases = attention_bias,
       .tied = true,
       .experts = &minimax_experts,
       .linear = granite_mamba,
       .note = "Granite 4"},
      {.name = "Starcoder2ForCausalLM",
       .gated_mlp = false,
       .biases = {.usual = true, .key = "use_bias"},
       .tied = true,
       .mixers = window,
       .note = "StarCoder2"},
      {.name = "InternLM2ForCausalLM", .qkv_biases = {.key = "bias"}, .note = "InternLM 2, 2.5"},
      {.name = "InternLM3ForCausalLM", .qkv_biases = {.key = "qkv_bias"}, .note = "InternLM 3"},
      {.name = "BaichuanForCausalLM", .widths = no_groups, .note = "Baichuan 2"},
      {.name = "BaiChuanForCausalLM", .widths = no_groups, .note = "Baichuan"},
      {.name = "GPT2LMHeadModel",
       .widths = gpt2_widths,
       .gated_mlp = false,
       .biases = always,
       .tied = true,
       .note = "GPT-2"},
      {.name = "GPTNeoXForCausalLM", .widths = no_groups, .gated_mlp = false, .biases = always, .note = "Pythia"},
      {.name = "MPTForCausalLM",
       .widths = mpt_widths,
       .gated_mlp = false,
       .biases = {.usual = true, .key = "no_bias", .inverted = true},
       .tied = true,
       .note = "MPT"},
  };
  return all;
}

}  // namespace hdpsim
