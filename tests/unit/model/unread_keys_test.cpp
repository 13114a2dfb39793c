#include "sim/model/impl/unread_keys.h"

#include <set>
#include <string>

#include "sim/model/model_config.h"
#include "sim/model/parameters.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

struct ModelAndProblems {
  std::optional<Transformer> model;
  std::string problems;
};

// A small model of a family with further keys, each on a line of its own.
ModelAndProblems read_with(const std::string& family, const std::string& keys) {
  Diagnostics diagnostics;
  const std::string text = R"({"architectures": [")" + family + R"("], "hidden_size": 64, "num_hidden_layers": 2,
  "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 256)" +
                           (keys.empty() ? "" : ",\n  " + keys) + "}";
  const Value config = parse_document("config.json", text, diagnostics);
  ModelAndProblems read{read_model(config, "test", diagnostics), ""};
  read.problems = diagnostics.text();
  return read;
}

const std::string experts =
    R"("n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 1)";

TEST_CASE("a key that makes another model of a known family is refused by its name, with the way around it",
          "[families]") {
  CHECK(read_with("LlamaForCausalLM", R"("num_experts": 8)").problems ==
        "config.json:3:3: error: 'num_experts' says that the model has experts in place of its MLP, which "
        "LlamaForCausalLM has not\n"
        "    3 |   \"num_experts\": 8}\n"
        "          ^ to simulate it without, write model: {..., num_experts: 0}\n");
  CHECK_THAT(read_with("DeepseekV3ForCausalLM", experts + ", \"index_topk\": 2048").problems,
             Catch::Contains("'index_topk' says that the model has an indexer"));
  CHECK_THAT(
      read_with("GptOssForCausalLM", R"("num_local_experts": 8, "num_experts_per_tok": 2, "moe_latent_size": 16)")
          .problems,
      Catch::Contains("'moe_latent_size' says that the model has experts that work in a latent"));
  CHECK_THAT(read_with("MistralForCausalLM", R"("swa_num_key_value_heads": 8)").problems,
             Catch::Contains("layers with a window that have heads of their own"));
}

TEST_CASE("a deciding key that says that there is nothing of it, or that repeats what a family reads, is no problem",
          "[families]") {
  for (const char* nothing : {"0", "null", "false", "[]"}) {
    CAPTURE(nothing);
    const ModelAndProblems read = read_with("LlamaForCausalLM", R"("index_topk": )" + std::string(nothing));
    CHECK(read.problems.empty());
    REQUIRE(read.model.has_value());
    CHECK(read.model->left_out.empty());
  }
  // A family with experts may have their number twice.
  CHECK(read_with("DeepseekV3ForCausalLM", experts + R"(, "num_experts": 8)").problems.empty());
}

TEST_CASE("what else a file says of its shape and its family does not read is left out aloud", "[families]") {
  const ModelAndProblems read =
      read_with("LlamaForCausalLM", R"("memory_layers": [1], "sliding_window": 512, "rope_theta": 10000)");
  REQUIRE(read.model.has_value());
  CHECK(read.model->left_out == std::vector<std::string>{"what the configuration says of its shape under "
                                                         "'memory_layers', 'sliding_window': LlamaForCausalLM does "
                                                         "not read those keys"});
}

TEST_CASE("an unknown architecture names its deciding keys, and can be simulated without them", "[families]") {
  // The layers of DeepSeek-V3 with a latent behind attention.
  const std::string keys = experts + R"(, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
  "v_head_dim": 16, "o_head_dim": 16, "o_lora_rank": )";
  const std::string problems = read_with("DeepseekNextForCausalLM", keys + "64").problems;
  CHECK_THAT(problems, Catch::Contains("there is no known architecture 'DeepseekNextForCausalLM'"));
  CHECK_THAT(problems,
             Catch::Contains("config.json:4:39: error: 'o_lora_rank' says that the model has an output projection"));
  CHECK_FALSE(read_with("DeepseekV3ForCausalLM", keys + "64").model);
  const ModelAndProblems without = read_with("DeepseekV3ForCausalLM", keys + "0");
  CHECK(without.problems.empty());
  REQUIRE(without.model.has_value());
  CHECK_THAT(without.model->left_out.at(0), Catch::Contains("'o_head_dim'"));
}

TEST_CASE("every deciding key stands once in the list", "[families]") {
  std::set<std::string_view> names;
  for (const DecidingKey& key : deciding_keys()) CHECK(names.insert(key.name).second);
}

TEST_CASE("a language model shares tied tables with the file around it", "[families]") {
  Diagnostics diagnostics;
  const std::string text = R"({"architectures": ["Qwen3VLForConditionalGeneration"], "tie_word_embeddings": true,
  "text_config": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
  "intermediate_size": 256}})";
  const auto model = read_model(parse_document("config.json", text, diagnostics), "test", diagnostics);
  CHECK(diagnostics.text().empty());
  REQUIRE(model.has_value());
  CHECK(model->tied_embeddings);
}

TEST_CASE("which layers have experts is a list of words or numbers, too", "[families]") {
  const ModelAndProblems words =
      read_with("Glm4MoeForCausalLM", experts + R"(, "mlp_layer_types": ["dense", "sparse"])");
  const ModelAndProblems numbers = read_with("Glm4MoeForCausalLM", experts + R"(, "moe_layer_freq": [0, 1, 1])");
  const ModelAndProblems leading = read_with("Glm4MoeForCausalLM", experts + R"(, "first_k_dense_replace": 1)");
  REQUIRE(words.model.has_value());
  REQUIRE(numbers.model.has_value());
  REQUIRE(leading.model.has_value());
  CHECK(parameter_count(*words.model) == parameter_count(*leading.model));
  CHECK(parameter_count(*numbers.model) == parameter_count(*leading.model));
  CHECK_THAT(read_with("Glm4MoeForCausalLM", experts + R"(, "mlp_layer_types": ["dense"])").problems,
             Catch::Contains("'mlp_layer_types' is about 1 layers, but the model has 2"));
}

TEST_CASE("branches are told where a word or a letter is of none, and where a further token needs too many",
          "[families]") {
  const auto read = [](const std::string& keys) {
    return read_with("NemotronHForCausalLM", R"("mamba_num_heads": 4, "n_groups": 1, "ssm_state_size": 8,
  "mamba_head_dim": 32, )" + keys);
  };
  REQUIRE(read(R"("layers_block_type": ["mamba", "mlp"])").model.has_value());
  CHECK_THAT(read(R"("layers_block_type": ["mamba", "cache"])").problems, Catch::Contains("config.json:4:56: error"));
  CHECK_THAT(read(R"("layers_block_type": ["mamba"])").problems,
             Catch::Contains("'layers_block_type' is about 1 layers, but the model has 2"));
  CHECK_THAT(read(R"("hybrid_override_pattern": "MX")").problems, Catch::Contains("'X' is no letter of a layer"));
  CHECK_THAT(read(R"("hybrid_override_pattern": "M-", "mtp_hybrid_override_pattern": ")" + std::string(101, 'M') + "\"")
                 .problems,
             Catch::Contains("'mtp_hybrid_override_pattern' is about 101 layers, at most 100 can be simulated"));
}

TEST_CASE("state spaces whose heads share neither keys nor channels are told, and letters of experts without any",
          "[families]") {
  const auto nemotron = [](const std::string& keys) {
    return read_with("NemotronHForCausalLM",
                     R"("ssm_state_size": 8, "mamba_head_dim": 32, "mamba_num_heads": 4, )" + keys)
        .problems;
  };
  CHECK_THAT(nemotron(R"("hybrid_override_pattern": "M-", "n_groups": 3)"),
             Catch::Contains("'n_groups' is 3, which does not divide 4 heads"));
  CHECK_THAT(nemotron(R"("hybrid_override_pattern": "ME", "n_groups": 2, "n_routed_experts": 0)"),
             Catch::Contains("layers have the letter E, and the model has no experts"));
  const auto bamba = [](const std::string& heads) {
    return read_with("BambaForCausalLM", R"("mamba_d_state": 8, "mamba_d_head": 32, "mamba_n_groups": 1,
  "mamba_expand": 2, "attn_layer_indices": [1], "mamba_n_heads": )" +
                                             heads)
        .problems;
  };
  CHECK_THAT(bamba("5"), Catch::Contains("heads of 32 are not the") && Catch::Contains("'mamba_expand' x"));
}

TEST_CASE("a file with experts in every layer needs no width of an MLP, and one with others does", "[families]") {
  const auto read = [](const std::string& dense) {
    Diagnostics diagnostics;
    const std::string text = R"({"architectures": ["Qwen3_5MoeForCausalLM"], "hidden_size": 64, "vocab_size": 100,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_experts": 8, "num_experts_per_tok": 2,
  "moe_intermediate_size": 16, "layer_types": ["full_attention", "full_attention"], "mlp_only_layers": [)" +
                             dense + "]}";
    const auto model = read_model(parse_document("config.json", text, diagnostics), "test", diagnostics);
    return diagnostics.text();
  };
  CHECK(read("").empty());
  CHECK_THAT(read("1"), Catch::Contains("the model needs 'intermediate_size'"));
}

}  // namespace
}  // namespace hdpsim
