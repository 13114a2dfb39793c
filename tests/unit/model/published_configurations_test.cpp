#include <fmt/format.h>

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
