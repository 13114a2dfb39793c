#include <fmt/format.h>

#include <cmath>
#include <string>

#include "sim/model/layers.h"
#include "sim/model/model_config.h"
#include "sim/model/parameters.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

Transformer model_of(const std::string& family, const std::string& keys) {
  Diagnostics diagnostics;
  const std::string text = fmt::format(R"({{"architectures": ["{}"], {}}})", family, keys);
  const Value config = parse_document("config.json", text, diagnostics);
  const auto model = read_model(config, family, diagnostics);
  CAPTURE(diagnostics.text());
  REQUIRE(model.has_value());
  return *model;
}

std::string widths(std::int64_t hidden, std::int64_t ffn, std::int64_t layers, std::int64_t heads,
                   std::int64_t kv_heads, std::int64_t vocabulary) {
  return fmt::format(
      R"("hidden_size": {}, "intermediate_size": {}, "num_hidden_layers": {}, "num_attention_heads": {},
         "num_key_value_heads": {}, "vocab_size": {})",
      hidden, ffn, layers, heads, kv_heads, vocabulary);
}

TEST_CASE("models without a preset have as many parameters as their checkpoints", "[families]") {
  struct Row {
    const char* family;
    std::string keys;
    double published;         // as the files of the checkpoint add up or, rounded, as the model card says
    double tolerance = 1e-4;  // of an activation's parameters, biases of norms, norms of full width
  };
  for (const Row& row : {
           Row{"GemmaForCausalLM", widths(3072, 24'576, 28, 16, 16, 256'000), 8'537'680'896.0},
           Row{"SmolLM3ForCausalLM", widths(2048, 11'008, 36, 16, 4, 128'256), 3'075'098'624.0},
           Row{"ApertusForCausalLM", widths(4096, 21'504, 32, 32, 8, 131'072), 8'053'338'176.0},
           Row{"ExaoneForCausalLM",
               R"("hidden_size": 4096, "intermediate_size": 14336, "num_layers": 32, "num_attention_heads": 32,
                  "num_key_value_heads": 8, "vocab_size": 102400)",
               7'818'448'896.0},
           Row{"NemotronForCausalLM", widths(4096, 16'384, 32, 48, 8, 256'000) + R"(, "head_dim": 128)", 8.27e9, 1e-3},
           Row{"OlmoForCausalLM", widths(4096, 11'008, 32, 32, 32, 50'304), 6'888'095'744.0},
           Row{"OlmoeForCausalLM",
               widths(2048, 1024, 16, 16, 16, 50'304) + R"(, "num_experts": 64, "num_experts_per_tok": 8)",
               6'919'161'856.0},
           Row{"StableLmForCausalLM", widths(2048, 5632, 24, 32, 32, 100'352) + R"(, "use_qkv_bias": true)",
               1'644'515'328.0},
           Row{"PhiForCausalLM", widths(2560, 10'240, 32, 32, 32, 51'200), 2'779'683'840.0},
           Row{"OPTForCausalLM",
               R"("hidden_size": 4096, "ffn_dim": 16384, "num_hidden_layers": 32, "num_attention_heads": 32,
                  "max_position_embeddings": 2048, "vocab_size": 50272)",
               6'658'473'984.0},
           Row{"GPTBigCodeForCausalLM",
               R"("n_embd": 6144, "n_inner": 24576, "n_layer": 40, "n_head": 48, "n_positions": 8192,
                  "vocab_size": 49152, "multi_query": true)",
               15'517'456'384.0},
           Row{"Ernie4_5ForCausalLM", widths(1024, 3072, 18, 16, 2, 103'424) + R"(, "head_dim": 128)", 0.361e9, 2e-3},
           Row{"SeedOssForCausalLM", widths(5120, 27'648, 64, 80, 8, 155'136) + R"(, "head_dim": 128)", 36.15e9, 1e-3},
           Row{"Dots1ForCausalLM",
               widths(4096, 10'944, 62, 32, 32, 152'064) +
                   R"(, "n_routed_experts": 128, "num_experts_per_tok": 6, "n_shared_experts": 2,
                      "moe_intermediate_size": 1408, "first_k_dense_replace": 1)",
               142.8e9, 2e-3},
           Row{"BailingMoeV2ForCausalLM",
               widths(2048, 5120, 20, 16, 4, 157'184) +
                   R"(, "head_dim": 128, "num_experts": 256, "num_experts_per_tok": 8, "num_shared_experts": 1,
                      "moe_intermediate_size": 512, "first_k_dense_replace": 1, "n_group": 8, "topk_group": 4)",
               16.26e9, 2e-3},
           Row{"Qwen2VLForConditionalGeneration", widths(3584, 18'944, 28, 28, 4, 152'064), 7'615'616'512.0},
           Row{"Qwen2_5_VLForConditionalGeneration",
               widths(2048, 11'008, 36, 16, 2, 151'936) + R"(, "text_config": {"tie_word_embeddings": true, )" +
                   widths(2048, 11'008, 36, 16, 2, 151'936) + "}",
               3'085'938'688.0},
           Row{"BloomForCausalLM",
               R"("n_embed": 14336, "n_layer": 70, "num_attention_heads": 112, "n_inner": null, "vocab_size": 250880)",
               176'247'271'424.0},
           // One number a layer, where all are the same; two of its 32 layers.
           Row{"HunYuanMoEV1ForCausalLM",
               widths(4096, 3072, 2, 32, 8, 128'167) +
                   R"(, "head_dim": 128, "tie_word_embeddings": true, "num_experts": 64, "moe_topk": [8, 8],
                      "num_shared_expert": [1, 1], "moe_intermediate_size": [3072, 3072])",
               80'393'183'232.0 -
                   30 * (65 * 3.0 * 4096 * 3072 + 64 * 4096 + 4096 * (2 * 4096 + 2 * 1024) + 2 * 4096 + 256)},
           Row{"QWenLMHeadModel",
               R"("hidden_size": 4096, "intermediate_size": 22016, "kv_channels": 128, "num_hidden_layers": 32,
                  "num_attention_heads": 32, "vocab_size": 151936, "no_bias": true)",
               7'721'324'544.0},
           Row{"GPTJForCausalLM",
               R"("n_embd": 4096, "n_inner": null, "n_layer": 28, "n_head": 16, "n_positions": 2048,
                  "vocab_size": 50400)",
               6'050'882'784.0},
           Row{"DbrxForCausalLM",
               R"("d_model": 6144, "n_layers": 40, "n_heads": 48, "max_seq_len": 32768, "vocab_size": 100352,
                  "attn_config": {"kv_n_heads": 8, "model_type": ""},
                  "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4})",
               131'596'523'520.0},
           Row{"Grok1ModelForCausalLM",
               widths(6144, 32'768, 64, 48, 8, 131'072) + R"(, "num_experts": 8, "num_experts_per_tok": 2)", 314e9,
               1e-2},
           Row{"Grok1ForCausalLM",
               widths(8192, 32'768, 64, 64, 8, 131'072) +
                   R"(, "num_local_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16384,
             "residual_moe": true)",
               270e9, 1e-2},
           Row{"ArcticForCausalLM",
               widths(7168, 4864, 35, 56, 8, 32'000) +
                   R"(, "num_local_experts": 128, "num_experts_per_tok": 2, "moe_layer_frequency": 1,
             "parallel_attn_mlp_res": true)",
               480e9, 1e-2},
           Row{"BambaForCausalLM",
               widths(4096, 14'336, 32, 32, 8, 128'256) +
                   R"(, "attn_layer_indices": [9, 18, 27], "mamba_n_heads": 128, "mamba_d_head": 64, "mamba_d_conv": 4,
                      "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_expand": 2, "mamba_chunk_size": 256)",
               9.78e9, 2e-3},
           Row{"MiniCPMForCausalLM", widths(2304, 5760, 40, 36, 36, 122'753), 2'724'880'896.0},
           // Of 7.3 billion, in whole: products with biases in attention, without in the MLP.
           Row{"InternLMForCausalLM", widths(4096, 11'008, 32, 32, 32, 103'168) + R"(, "bias": true)",
               32 * (4.0 * 4096 * 4097 + 3.0 * 4096 * 11'008 + 2 * 4096) + 2 * 103'168.0 * 4096},
           // Blocks of 256 columns: two thirds of 6,656 are 4,437, which is 4,608.
           Row{"Lfm2ForCausalLM",
               R"("hidden_size": 1024, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8,
                  "vocab_size": 65536, "block_dim": 1024, "block_ff_dim": 6656, "block_multiple_of": 256,
                  "block_auto_adjust_ff_dim": true, "conv_L_cache": 3, "full_attn_idxs": [2, 5, 8, 10, 12, 14])",
               354'483'968.0},
           Row{"Lfm2ForCausalLM",
               R"("hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
                  "vocab_size": 65536, "block_ff_dim": 12288, "conv_L_cache": 3,
                  "full_attn_idxs": [2, 5, 8, 10, 12, 14])",
               1'170'340'608.0},
           // Tencent 2025, arXiv 2512.24618: 1.96 billion.
           Row{"YoutuForCausalLM",
               widths(2048, 6144, 32, 16, 16, 128'256) +
                   R"(, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
                        "v_head_dim": 128)",
               1.96e9, 2e-3},
           // The files of MiniCPM3-4B add up to 4.07 billion.
           Row{"MiniCPM3ForCausalLM",
               widths(2560, 6400, 62, 40, 40, 73'448) +
                   R"(, "q_lora_rank": 768, "kv_lora_rank": 256, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
                        "v_head_dim": 64)",
               4.07e9, 2e-3},
           // The files of VaultGemma-1B add up to 1.04 billion.
           Row{"VaultGemmaForCausalLM", widths(1152, 6912, 26, 4, 4, 256'000) + R"(, "sliding_window": 512)", 1.04e9,
               3e-3},
           // Keys that files leave out have the defaults of their family.
           Row{"MistralForCausalLM",
               R"("hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
                  "vocab_size": 32000)",
               7'241'732'096.0},
       }) {
    INFO(row.family);
    CHECK(double(parameter_count(model_of(row.family, row.keys))) == Approx(row.published).epsilon(row.tolerance));
  }
}

TEST_CASE("models with experts have as many active parameters as published", "[families]") {
  const Transformer ernie =
      model_of("Ernie4_5_MoeForCausalLM",
               widths(2560, 12'288, 28, 20, 4, 103'424) +
                   R"(, "moe_num_experts": 64, "moe_k": 6, "moe_num_shared_experts": 2, "moe_intermediate_size": 1536,
             "moe_layer_start_index": 1, "use_bias": false)");
  CHECK(double(parameter_count(ernie)) == Approx(21.8e9).epsilon(0.01));
  const std::int64_t table = ernie.vocabulary * ernie.hidden;
  CHECK(double(active_parameter_count(ernie) - table) == Approx(3e9).epsilon(0.05));
  const Transformer dots =
      model_of("Dots1ForCausalLM", widths(4096, 10'944, 62, 32, 32, 152'064) +
                                       R"(, "n_routed_experts": 128, "num_experts_per_tok": 6, "n_shared_experts": 2,
                                           "moe_intermediate_size": 1408, "first_k_dense_replace": 1)");
  CHECK(double(active_parameter_count(dots)) == Approx(14e9).epsilon(0.05));
}

// "a, b, b, b, a, ..." of so many layers.
std::string alternating(const char* first, const char* others, int layers, int period) {
  std::string list;
  for (int i = 0; i < layers; ++i)
    list += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", i % period == 0 ? first : others);
  return "[" + list + "]";
}

// 0 for every layer with attention to all tokens of MiMo-V2-Flash: 0, 5, 11, ... 47.
std::string mimo_pattern() {
  std::string list;
  for (int i = 0; i < 48; ++i) list += fmt::format("{}{}", i == 0 ? "" : ", ", i == 0 || i % 6 == 5 ? 0 : 1);
  return "[" + list + "]";
}

std::string experts_from(int first, int layers) {
  std::string list;
  for (int i = first; i < layers; ++i) list += fmt::format("{}{}", i == first ? "" : ",", i);
  return list;
}

const std::string mimo_keys =
    widths(4096, 16'384, 48, 64, 4, 152'576) +
    R"(, "head_dim": 192, "v_head_dim": 128, "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8,
         "swa_head_dim": 192, "swa_v_head_dim": 128, "moe_intermediate_size": 2048, "n_routed_experts": 256,
         "num_experts_per_tok": 8, "n_shared_experts": null, "first_k_dense_replace": 1, "sliding_window": 128,
         "hybrid_layer_pattern": )" +
    mimo_pattern();
const std::string step_keys =
    R"("hidden_size": 4096, "intermediate_size": 11264, "num_hidden_layers": 45, "num_attention_heads": 64,
       "num_attention_groups": 8, "head_dim": 128, "vocab_size": 128896, "moe_num_experts": 288, "moe_top_k": 8,
       "moe_intermediate_size": 1280, "share_expert_dim": 1280, "sliding_window": 512,
       "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": 96,
                                   "num_attention_groups": 8, "head_dim": 128},
       "moe_layers_enum": ")" +
    experts_from(3, 45) + R"(", "layer_types": )" + alternating("full_attention", "sliding_attention", 45, 4);
const std::string longcat_keys =
    R"("hidden_size": 6144, "num_layers": 28, "num_attention_heads": 64, "ffn_hidden_size": 12288,
       "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
       "moe_topk": 12, "n_routed_experts": 512, "zero_expert_num": 256, "expert_ffn_hidden_size": 2048,
       "vocab_size": 131072)";

TEST_CASE("models of 2025 and 2026 with experts have as many parameters, and active ones, as published", "[families]") {
  struct Row {
    const char* family;
    std::string keys;
    double total;  // in billions
    double active;
    int tables;  // tables of words that the active count holds
  };
  for (const Row& row : {
           // Arcee AI, the card of Trinity-Mini: 26 billion, 3 active.
           Row{"AfmoeForCausalLM",
               widths(2048, 6144, 32, 32, 4, 200'192) +
                   R"(, "head_dim": 128, "moe_intermediate_size": 1024, "num_experts": 128, "num_experts_per_tok": 8,
                        "num_shared_experts": 1, "num_dense_layers": 2, "sliding_window": 2048,
                        "global_attn_every_n_layers": 4)",
               26, 3, 1},
           // Liquid AI 2025, arXiv 2511.23404, table 1: 8.3 billion, 1.5 active.
           Row{"Lfm2MoeForCausalLM",
               widths(2048, 7168, 24, 32, 8, 65'536) +
                   R"(, "moe_intermediate_size": 1792, "conv_L_cache": 3, "num_dense_layers": 2, "num_experts": 32,
                        "num_experts_per_tok": 4, "full_attn_idxs": [2, 6, 10, 14, 18, 21])",
               8.3, 1.5, 1},
           // Meituan 2025, arXiv 2509.01322: 560 billion, 27 active in the mean.
           Row{"LongcatFlashForCausalLM", longcat_keys, 560, 27, 1},
           // Xiaomi, the card of MiMo-V2-Flash: 309 billion, 15 active.
           Row{"MiMoV2FlashForCausalLM", mimo_keys, 309, 15, 2},
           // StepFun, the card of Step-3.5-Flash: 196.81 billion with the layers that predict further tokens, 11
           // active.
           Row{"Step3p5ForCausalLM", step_keys, 196.81, 11, 1},
           // Upstage, the card of Solar-Open-100B: 102.6 billion, 12 active.
           Row{"SolarOpenForCausalLM",
               widths(4096, 10'240, 48, 64, 8, 196'608) +
                   R"(, "head_dim": 128, "moe_intermediate_size": 1280, "n_routed_experts": 128, "n_shared_experts": 1,
                        "num_experts_per_tok": 8, "first_k_dense_replace": 0, "use_qk_norm": false)",
               102.6, 12, 2},
           // Kimi Team 2025, arXiv 2510.26692: 48 billion, 3 active; the files of the checkpoint hold 49.
           Row{"KimiLinearForCausalLM",
               widths(2304, 9216, 27, 32, 32, 163'840) +
                   R"(, "head_dim": 72, "kv_lora_rank": 512, "q_lora_rank": null, "qk_nope_head_dim": 128,
                        "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_intermediate_size": 1024, "num_experts": 256,
                        "num_experts_per_token": 8, "num_shared_experts": 1, "first_k_dense_replace": 1,
                        "num_expert_group": 1, "topk_group": 1,
                        "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128,
                                               "num_heads": 32, "short_conv_kernel_size": 4})",
               49, 3, 1},
           // LG AI Research, K-EXAONE-236B-A23B.
           Row{"ExaoneMoEForCausalLM",
               widths(6144, 18'432, 48, 64, 8, 153'600) +
                   R"(, "head_dim": 128, "moe_intermediate_size": 2048, "num_experts": 128, "num_experts_per_tok": 8,
                        "num_shared_experts": 1, "first_k_dense_replace": 1, "sliding_window": 128,
                        "sliding_window_pattern": "LLLG")",
               236, 23, 1},
       }) {
    INFO(row.family);
    const Transformer model = model_of(row.family, row.keys);
    CHECK(double(parameter_count(model)) == Approx(row.total * 1e9).epsilon(0.01));
    const std::int64_t left_out = (model.tied_embeddings ? 1 : 2) - row.tables;
    const double active = double(active_parameter_count(model) - left_out * model.vocabulary * model.hidden) / 1e9;
    CHECK(active == Approx(row.active).epsilon(0.06));
  }
}

TEST_CASE("Trinity Nano has the whole billions after which it names itself, and its windows", "[families]") {
  const Transformer model =
      model_of("AfmoeForCausalLM",
               widths(1024, 3072, 56, 8, 2, 200'192) +
                   R"(, "head_dim": 128, "moe_intermediate_size": 256, "num_experts": 128, "num_experts_per_tok": 8,
                        "num_shared_experts": 1, "num_dense_layers": 2, "sliding_window": 2048,
                        "global_attn_every_n_layers": 4)");
  CHECK(std::round(double(parameter_count(model)) / 1e9) == 6);
  CHECK(std::round(double(active_parameter_count(model)) / 1e9) == 1);
  std::int64_t full = 0;
  for (const LayerRun& run : layer_runs(model)) full += of_kind(model, run.kind).window == 0 ? run.count : 0;
  CHECK(full == 56 / 4);
}

TEST_CASE("layers with a window may have heads of their own, beside the others or in a map", "[families]") {
  const Transformer mimo = model_of("MiMoV2FlashForCausalLM", mimo_keys);
  const Transformer step = model_of("Step3p5ForCausalLM", step_keys);
  const auto of_layer = [](const Transformer& model, std::int64_t layer) {
    return of_kind(model, layer_runs(model, layer, 1).front().kind);
  };
  CHECK(of_layer(mimo, 5).window == 0);
  CHECK(of_layer(mimo, 5).kv_heads == 4);
  CHECK_FALSE(of_layer(mimo, 5).sinks);
  CHECK(of_layer(mimo, 7).window == 128);
  CHECK(of_layer(mimo, 7).kv_heads == 8);
  CHECK(of_layer(mimo, 7).value_dim == 128);
  CHECK(of_layer(mimo, 7).sinks);
  // Keys and values of four more heads, and a score for each head.
  CHECK(layer_parameter_count(of_layer(mimo, 7)) - layer_parameter_count(of_layer(mimo, 5)) ==
        4096 * 4 * (192 + 128) + 64);
  CHECK(of_layer(step, 4).heads == 64);
  CHECK(of_layer(step, 5).heads == 96);
  CHECK(layer_parameter_count(of_layer(step, 5)) - layer_parameter_count(of_layer(step, 4)) == 2 * 4096 * 32 * 128);
}

TEST_CASE("heads of layers with a window that cannot be are told where they are stated", "[families]") {
  Diagnostics diagnostics;
  const std::string text = R"({"architectures": ["MiMoV2FlashForCausalLM"], "moe_intermediate_size": 32,
"n_routed_experts": 8, "num_experts_per_tok": 2, "sliding_window": 8, "hybrid_layer_pattern": [0, 1],
"swa_num_key_value_heads": 3, )" +
                           widths(64, 256, 2, 4, 2, 100) + "}";
  CHECK_FALSE(read_model(parse_document("config.json", text, diagnostics), "test", diagnostics));
  CHECK_THAT(diagnostics.text(), Catch::Contains("config.json:3:28: error: 3 key-value heads of layers with a window "
                                                 "do not divide 4 heads"));
}

TEST_CASE("layers that predict further tokens and are described by lists have the MLP of layers without experts",
          "[families]") {
  const auto last = [](const std::string& family, const std::string& keys) {
    const Transformer model = model_of(family, keys + R"(, "num_nextn_predict_layers": 3)");
    CHECK(model.predictions == 4);
    return of_kind(model, layer_runs(model, model.layers - 1, 1).front().kind);
  };
  const Transformer step = last("Step3p5ForCausalLM", step_keys);
  CHECK(step.joins);
  CHECK_FALSE(step.moe);
  CHECK(step.ffn_hidden == 11'264);
  CHECK(step.window == 512);
  // Xiaomi, the card of MiMo-V2-Flash: 0.33 billion each.
  CHECK(double(layer_parameter_count(last("MiMoV2FlashForCausalLM", mimo_keys))) == Approx(0.33e9).epsilon(0.01));
  // Lists that go on beyond the layers tell how those mix tokens.
  std::string longer = step_keys;
  longer.replace(longer.rfind(']'), 1, R"(, "full_attention", "full_attention", "full_attention"])");
  CHECK(last("Step3p5ForCausalLM", longer).window == 0);
}

TEST_CASE("a layer of two attentions is two layers, and experts that compute nothing take their share of choices",
          "[families]") {
  const Transformer model = model_of("LongcatFlashForCausalLM", longcat_keys);
  CHECK(model.layers == 2 * 28);
  REQUIRE(model.moe);
  CHECK(model.moe->experts_per_token == 12 * 512 / (512 + 256));
  CHECK(model.moe->shared_hidden == 12'288);
  CHECK(expert_layers(model, layer_runs(model)) == 28);
  CHECK(of_kind(model, layer_runs(model, 1, 1).front().kind).ffn_hidden == 12'288);
  REQUIRE(model.left_out.size() == 2);
  CHECK_THAT(model.left_out.front(), Catch::Contains("of the 12 experts that a token chooses, the mean of 8 compute"));
}

TEST_CASE("a model of a family with experts that has none has the MLP of the family's dense layers", "[families]") {
  const auto ffn_of = [](const std::string& family, const std::string& keys) {
    return model_of(family, widths(64, 256, 2, 4, 2, 100) + keys).ffn_hidden;
  };
  CHECK(ffn_of("Llama4ForCausalLM",
               R"(, "num_local_experts": 0, "intermediate_size_mlp": 96, "attention_chunk_size": 8)") == 96);
  CHECK(ffn_of("Qwen2MoeForCausalLM",
               R"(, "num_experts": 0, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 48)") == 256);
  CHECK(ffn_of(
            "GraniteMoeHybridForCausalLM",
            R"(, "num_local_experts": 0, "shared_intermediate_size": 48, "layer_types": ["attention", "attention"])") ==
        48);
  CHECK_FALSE(model_of("JambaForCausalLM", widths(64, 256, 2, 4, 2, 100) + R"(, "num_experts": 1)").moe);
}

TEST_CASE("a period of layers may be letters, and widths of Mamba may be left to their rule", "[families]") {
  const Transformer exaone =
      model_of("Exaone4ForCausalLM",
               widths(64, 256, 6, 4, 2, 100) + R"(, "sliding_window": 32, "sliding_window_pattern": "LLG")");
  const auto window_of = [&](std::int64_t layer) {
    return of_kind(exaone, layer_runs(exaone, layer, 1).front().kind).window;
  };
  CHECK(window_of(1) == 32);
  CHECK(window_of(2) == 0);
  CHECK(window_of(4) == 32);
  const Transformer granite =
      model_of("GraniteMoeHybridForCausalLM",
               widths(64, 256, 2, 4, 2, 100) +
                   R"(, "num_local_experts": 0, "shared_intermediate_size": 48, "mamba_n_heads": 8,
                                              "mamba_n_groups": 1, "mamba_d_state": 16, "mamba_d_head": "auto")");
  REQUIRE(granite.linear);
  CHECK(granite.linear->value_dim == 2 * 64 / 8);  // twice the hidden size over the heads
}

}  // namespace
}  // namespace hdpsim
