#include "sim/model/model_config.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "sim/model/layers.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

const std::string presets = std::string(HDPSIM_SOURCE_DIR) + "/configs/models";

struct ReadModel {
  std::optional<Transformer> model;
  std::string problems;
};

ReadModel read_text(const std::string& json) {
  Diagnostics diagnostics;
  const Value config = parse_document("config.json", json, diagnostics);
  ReadModel read{read_model(config, "test", diagnostics), ""};
  read.problems = diagnostics.text();
  return read;
}

// The numbers of the layers that have experts.
std::vector<std::int64_t> with_experts(const Transformer& model) {
  std::vector<std::int64_t> found;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    if (of_kind(model, layer_runs(model, layer, 1).front().kind).moe) found.push_back(layer);
  }
  return found;
}

TEST_CASE("every preset loads without a problem", "[model]") {
  const auto names = model_preset_names(presets);
  for (const char* name : {"llama-7b", "llama-13b", "llama-30b", "llama-70b", "mixtral-8x7b", "mixtral-8x22b"}) {
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
  for (const std::string& name : names) {
    const Transformer model = test::preset(name);
    CHECK(model.name == name);
    for (const Transformer& kind : of_each_kind(model)) CHECK((kind.heads == 0 || kind.heads % kind.kv_heads == 0));
  }
}

TEST_CASE("a published Llama configuration is read as it is", "[model]") {
  const auto [model, problems] = read_text(R"({
  "_name_or_path": "meta-llama/Llama-2-70b-hf",
  "architectures": ["LlamaForCausalLM"],
  "bos_token_id": 1,
  "hidden_act": "silu",
  "hidden_size": 8192,
  "initializer_range": 0.02,
  "intermediate_size": 28672,
  "max_position_embeddings": 4096,
  "model_type": "llama",
  "num_attention_heads": 64,
  "num_hidden_layers": 80,
  "num_key_value_heads": 8,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": null,
  "tie_word_embeddings": false,
  "torch_dtype": "float16",
  "use_cache": true,
  "vocab_size": 32000
})");
  CHECK(problems.empty());
  REQUIRE(model.has_value());
  CHECK(model->layers == 80);
  CHECK(model->hidden == 8192);
  CHECK(model->heads == 64);
  CHECK(model->kv_heads == 8);
  CHECK(model->head_dim == 128);
  CHECK(model->ffn_hidden == 28672);
  CHECK(model->vocabulary == 32000);
  CHECK(model->gated_mlp);
  CHECK_FALSE(model->biases);
  CHECK_FALSE(model->tied_embeddings);
  CHECK_FALSE(model->moe.has_value());
}

TEST_CASE("key-value heads default to heads, and a stated head dimension need not share the hidden size", "[model]") {
  const auto [model, problems] = read_text(R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 6656,
    "intermediate_size": 17920, "num_attention_heads": 56, "num_hidden_layers": 60, "head_dim": 128, "vocab_size": 32000})");
  CHECK(problems.empty());
  REQUIRE(model.has_value());
  CHECK(model->kv_heads == 56);
  CHECK(model->head_dim == 128);
}

TEST_CASE("a latent of no rank is none, and heads then share the hidden size", "[model]") {
  const auto [model, problems] = read_text(R"({"architectures": ["DeepseekV2ForCausalLM"], "hidden_size": 1280,
    "intermediate_size": 6848, "num_attention_heads": 10, "num_hidden_layers": 2, "first_k_dense_replace": 1,
    "kv_lora_rank": null, "moe_intermediate_size": 896, "n_routed_experts": 8, "num_experts_per_tok": 2,
    "vocab_size": 100})");
  CHECK(problems == "");
  REQUIRE(model.has_value());
  CHECK(model->head_dim == 128);
  CHECK_FALSE(model->latent.has_value());
}

TEST_CASE("a GPT-2 configuration has an ungated MLP of four times the width, biases, positions and one table",
          "[model]") {
  const auto [model, problems] = read_text(R"({"architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_layer": 12,
    "n_head": 12, "n_inner": null, "n_positions": 1024, "vocab_size": 50257})");
  CHECK(problems.empty());
  REQUIRE(model.has_value());
  CHECK(model->ffn_hidden == 3072);
  CHECK_FALSE(model->gated_mlp);
  CHECK(model->biases);
  CHECK(model->learned_positions == 1024);
  CHECK(model->tied_embeddings);
}

TEST_CASE("a GPT-NeoX configuration has rotary positions and two tables", "[model]") {
  const auto [model, problems] = read_text(R"({"architectures": ["GPTNeoXForCausalLM"], "hidden_size": 6144,
    "intermediate_size": 24576, "num_hidden_layers": 44, "num_attention_heads": 64, "vocab_size": 50432})");
  CHECK(problems.empty());
  REQUIRE(model.has_value());
  CHECK(model->learned_positions == 0);
  CHECK(model->kv_heads == 64);
  CHECK_FALSE(model->tied_embeddings);
}

TEST_CASE("an MPT configuration with ALiBi has no learned positions", "[model]") {
  const auto [model, problems] = read_text(R"({"architectures": ["MPTForCausalLM"], "d_model": 4096, "n_layers": 32,
    "n_heads": 32, "expansion_ratio": 4, "max_seq_len": 2048, "no_bias": true, "vocab_size": 50432,
    "attn_config": {"alibi": true, "attn_impl": "torch"}, "learned_pos_emb": true})");
  CHECK(problems.empty());
  REQUIRE(model.has_value());
  CHECK(model->learned_positions == 0);
  CHECK_FALSE(model->biases);
  CHECK(model->ffn_hidden == 16384);
}

TEST_CASE("a mixture of experts is read", "[model]") {
  Diagnostics diagnostics;
  const auto model = load_model_preset("mixtral-8x7b", presets, {}, diagnostics);
  REQUIRE(model.has_value());
  REQUIRE(model->moe.has_value());
  CHECK(model->moe->experts == 8);
  CHECK(model->moe->experts_per_token == 2);
  CHECK(model->moe->expert_hidden == 14336);
  CHECK(model->moe->shared_hidden == 0);
  CHECK(model->others.empty());  // every layer has experts
}

TEST_CASE("families tell in words of their own which layers have experts, and what all tokens share", "[model]") {
  const std::string head = R"("hidden_size": 64, "num_hidden_layers": 6, "num_attention_heads": 4, "vocab_size": 100,
    "intermediate_size": 256, "moe_intermediate_size": 32, "num_experts_per_tok": 2, )";
  const auto [deepseek, first] = read_text(R"({"architectures": ["DeepseekForCausalLM"], )" + head +
                                           R"("n_routed_experts": 8, "n_shared_experts": 3, "moe_layer_freq": 2,
    "first_k_dense_replace": 1})");
  CHECK(first.empty());
  REQUIRE(deepseek.has_value());
  CHECK(deepseek->moe->experts == 8);
  CHECK(deepseek->moe->expert_hidden == 32);
  CHECK(deepseek->moe->shared_hidden == 3 * 32);
  CHECK_FALSE(deepseek->moe->shared_gate);
  CHECK(with_experts(*deepseek) == std::vector<std::int64_t>{2, 4});  // not the first, and no odd ones
  const auto [qwen, second] = read_text(R"({"architectures": ["Qwen2MoeForCausalLM"], )" + head +
                                        R"("num_experts": 8, "shared_expert_intermediate_size": 96,
    "decoder_sparse_step": 2, "mlp_only_layers": [3]})");
  CHECK(second.empty());
  REQUIRE(qwen.has_value());
  CHECK(qwen->moe->shared_hidden == 96);
  CHECK(qwen->moe->shared_gate);
  CHECK(qwen->qkv_biases);
  CHECK(with_experts(*qwen) == std::vector<std::int64_t>{1, 5});  // of 1, 3 and 5 but the one that is named
}

TEST_CASE("a latent without its widths, too many experts a token and no layer with experts are told at once",
          "[model]") {
  const auto [model, problems] = read_text(R"({"architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 256,
    "moe_intermediate_size": 32, "n_routed_experts": 4, "num_experts_per_tok": 5, "first_k_dense_replace": 2,
    "kv_lora_rank": 512})");
  CHECK_FALSE(model.has_value());
  CHECK(problems.find("config.json:2:26: error: none of the 2 layers has experts") != std::string::npos);
  CHECK(problems.find("config.json:3:80: error: 5 experts a token, but the model has 4") != std::string::npos);
  CHECK(problems.find("the model needs 'qk_rope_head_dim'") != std::string::npos);
}

TEST_CASE("groups of experts of which a token chooses some are read, and those that cannot be are told", "[model]") {
  const auto with = [](const std::string& keys) {
    return read_text(R"({"architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2,
      "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 256, "moe_intermediate_size": 32,
      "n_routed_experts": 16, "num_experts_per_tok": 4, "kv_lora_rank": 16, "qk_rope_head_dim": 8,
      "qk_nope_head_dim": 8, "v_head_dim": 16, )" +
                     keys + "}");
  };
  const auto groups = [&](const std::string& keys) {
    const auto [model, problems] = with(keys);
    REQUIRE(model.has_value());
    const Transformer layer = of_kind(*model, 0);
    const MixtureOfExperts& moe = layer.moe.value();
    return std::pair(moe.groups, moe.groups_per_token);
  };
  using Groups = std::pair<std::int64_t, std::int64_t>;
  CHECK(groups(R"("n_group": 8, "topk_group": 4)") == Groups(8, 4));
  CHECK(groups(R"("n_group": 1, "topk_group": 1)") == Groups(1, 1));
  CHECK(groups(R"("n_group": 8, "topk_group": 4, "topk_method": "greedy")") == Groups(1, 1));
  CHECK(with(R"("n_group": 3)").problems.find("3 groups of 16 experts cannot be equal") != std::string::npos);
  CHECK(with(R"("n_group": 8, "topk_group": 9)").problems.find("a token chooses 9 of 8 groups") != std::string::npos);
  CHECK(with(R"("n_group": 8, "topk_group": 1)")
            .problems.find("a token chooses 1 of the groups, of 2 experts each: fewer than its 4 experts") !=
        std::string::npos);
}

TEST_CASE("all problems of a configuration are told at once, with their places", "[model]") {
  const auto [model, problems] = read_text(R"({
  "architectures": ["LlamaForCausalLM"],
  "hidden_size": 4000,
  "num_attention_heads": 33,
  "num_key_value_heads": 8,
  "num_hidden_layers": 0,
  "vocab_size": "many"
})");
  CHECK_FALSE(model.has_value());
  CHECK(problems ==
        "config.json:1:1: error: the model needs 'intermediate_size'\n"
        "    1 | {\n"
        "        ^\n"
        "config.json:4:26: error: 33 heads do not divide the hidden size 4000\n"
        "    4 |   \"num_attention_heads\": 33,\n"
        "                                 ^ state 'head_dim' if the heads do not share the hidden size\n"
        "config.json:5:26: error: 8 key-value heads do not divide 33 heads\n"
        "    5 |   \"num_key_value_heads\": 8,\n"
        "                                 ^ every key-value head serves equally many heads\n"
        "config.json:6:24: error: 'num_hidden_layers' is 0, it must be from 1 to 10000\n"
        "    6 |   \"num_hidden_layers\": 0,\n"
        "                               ^\n"
        "config.json:7:17: error: \"many\" is not a whole number\n"
        "    7 |   \"vocab_size\": \"many\"\n"
        "                        ^ write a whole number such as 4096, 256Ki (x 1024) or 32k (x 1000)\n");
}

TEST_CASE("a hint how to read an unknown architecture is given where a family reads all of its shape alone",
          "[model]") {
  // Qwen3's mixture of experts, with two keys of its own.
  const std::string file = R"({"architectures": ["NewForCausalLM"], "model_type": "new", "hidden_size": 64,
  "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 100, "num_experts": 8, "num_experts_per_tok": 2,
  "moe_intermediate_size": 16, "decoder_sparse_step": 1, "memory_layers": [1, 3], "compressed_kv_rank": 12,
  "attention_bias": false, "rope_theta": 10000, "bos_token_id": 1, "hidden_act": "silu"})";
  const std::string problem = read_text(file).problems;
  CHECK_THAT(problem, Catch::Contains("config.json:1:20: error: there is no known architecture 'NewForCausalLM' "
                                      "(model_type 'new'); no family that is known reads all of its shape: not "
                                      "'memory_layers', 'compressed_kv_rank'\n"));
  CHECK_THAT(problem, !Catch::Contains("architecture:") && !Catch::Contains("did you mean"));
  const std::string plain = R"({"architectures": ["NewForCausalLM"], "hidden_size": 64, "num_hidden_layers": 4})";
  CHECK_THAT(read_text(plain).problems,
             Catch::Contains("most like LlamaForCausalLM (gates of MLPs, biases, norms and tied tables"));
}

TEST_CASE("no family is proposed where those that read a file make other models of it", "[model]") {
  const auto problem_of = [](const std::string& keys) {
    return read_text(R"({"architectures": ["NewForCausalLM"], "hidden_size": 512, "num_hidden_layers": 8,
      "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 2048, "vocab_size": 100)" +
                     keys + "}")
        .problems;
  };
  // Without an activation it may have MLPs with or without a gate: 8 layers of 3 or 2 matrices beside 4 of attention.
  CHECK_THAT(problem_of(""), Catch::Contains("the file does not tell which of the two") &&
                                 Catch::Contains("write model: {..., architecture: NAME}"));
  CHECK_THAT(problem_of(R"(, "hidden_act": "silu", "tie_word_embeddings": false)"),
             Catch::Contains("most like LlamaForCausalLM") && Catch::Contains("architecture: LlamaForCausalLM}"));
  CHECK_THAT(problem_of(R"(, "hidden_act": "relu2", "tie_word_embeddings": false)"),
             Catch::Contains("architecture: ApertusForCausalLM}"));
  CHECK_THAT(problem_of(R"(, "mamba_d_ssm": 512)"),
             Catch::Contains("'mamba_d_ssm' says that the model has Mamba beside attention in one layer"));
}

TEST_CASE("a class that is not known is of the family of its model_type", "[model]") {
  const std::string encoder = R"({"architectures": ["Gemma2Model"], "model_type": "gemma2"})";
  CHECK_THAT(
      read_text(encoder).problems,
      Catch::Contains("no known architecture 'Gemma2Model'; its model_type 'gemma2' is of Gemma2ForCausalLM\n") &&
          Catch::Contains("write model: {..., architecture: Gemma2ForCausalLM}\n"));
  CHECK_THAT(read_text(R"({"architectures": "LlamaForCausalLM"})").problems,
             Catch::Contains("1:19: error: 'architectures' must be a list of one name") &&
                 Catch::Contains("write \"architectures\": [\"LlamaForCausalLM\"]"));
}

TEST_CASE("the language model of an unknown model of several modalities is read as what it is", "[model]") {
  const ReadModel read =
      read_text(R"({"architectures": ["NewVLForConditionalGeneration"], "vision_config": {"depth": 8},
    "tie_word_embeddings": true, "text_config": {"model_type": "qwen2", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100}})");
  CHECK(read.problems.empty());
  REQUIRE(read.model);
  CHECK(read.model->qkv_biases);
  CHECK(read.model->tied_embeddings);
  CHECK(read.model->left_out ==
        std::vector<std::string>{"its encoder of 'vision_config'",
                                 "what NewVLForConditionalGeneration has around its language model, a Qwen2ForCausalLM "
                                 "('text_config')"});
}

TEST_CASE("the text model of one that hears and speaks is read as what it is", "[model]") {
  const ReadModel read = read_text(R"({"architectures": ["Qwen3OmniMoeForConditionalGeneration"],
    "thinker_config": {"audio_config": {"depth": 8}, "text_config": {"model_type": "qwen3_omni_moe_text",
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 16, "intermediate_size": 128, "vocab_size": 100}},
    "talker_config": {"hidden_size": 16}})");
  CHECK(read.problems.empty());
  REQUIRE(read.model);
  CHECK(read.model->hidden == 64);
  REQUIRE(read.model->moe.has_value());
  CHECK(read.model->moe->experts == 4);
  CHECK(read.model->left_out.at(0) == "its encoder of 'audio_config'");
}

TEST_CASE("keys of a list or of a number that are something else are told once", "[model]") {
  const std::string start = R"({"architectures": ["GptOssForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 8, "intermediate_size": 32, "vocab_size": 100, "num_local_experts": 4, "num_experts_per_tok": 2)";
  const std::string problem = read_text(start + R"(, "layer_types": "sliding_attention"})").problems;
  CHECK_THAT(problem, Catch::Contains("error: 'layer_types' must be a list"));
  CHECK(problem.find("error:") == problem.rfind("error:"));
  const std::string none =
      read_text(R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 8, "vocab_size": 100})")
          .problems;
  CHECK(none.find("'intermediate_size'") == none.rfind("'intermediate_size'"));
}

TEST_CASE("a file without architectures is read by its model_type", "[model]") {
  int read = 0;
  for (const std::string& name : model_preset_names(presets)) {
    CAPTURE(name);
    Diagnostics problems;
    Value config = load_document(presets + "/" + name + ".json", problems);
    const std::optional<Transformer> whole = read_model(config, name, problems);
    if (config.find("model_type") == nullptr || name == "kimi-k2") continue;  // Kimi K2 is of DeepSeek-V3's class
    std::erase_if(config.entries, [](const Value::Entry& entry) { return entry.key == "architectures"; });
    const std::optional<Transformer> model = read_model(config, name, problems);
    CHECK(problems.text().empty());
    REQUIRE((whole && model));
    CHECK(static_cast<const Layer&>(*model) == static_cast<const Layer&>(*whole));
    CHECK(model->others == whole->others);
    CHECK(model->pattern == whole->pattern);
    CHECK(model->vocabulary == whole->vocabulary);
    ++read;
  }
  CHECK(read > 20);
  const std::string file = R"({"model_type": "new", "hidden_size": 64, "num_hidden_layers": 4})";
  CHECK(read_text(file).problems ==
        "config.json:1:16: error: there is no known architecture of model_type 'new', and the file has no "
        "'architectures'; it is most like LlamaForCausalLM (gates of MLPs, biases, norms and tied tables would be as "
        "there)\n"
        "    1 | {\"model_type\": \"new\", \"hidden_size\": 64, \"num_hidden_layers\": 4}\n"
        "                       ^ to read it as another says its keys, write model: {..., architecture: "
        "LlamaForCausalLM}\n");
}

TEST_CASE("an unknown architecture and an unknown preset are reported with what exists", "[model]") {
  CHECK(read_text(R"({"architectures": ["LLamaForCausalLM"]})").problems ==
        "config.json:1:20: error: there is no known architecture 'LLamaForCausalLM'\n"
        "    1 | {\"architectures\": [\"LLamaForCausalLM\"]}\n"
        "                           ^ did you mean 'LlamaForCausalLM'?\n");
  CHECK(read_text(R"({"architectures": ["Foo"]})").problems.find("known: LlamaForCausalLM, ") != std::string::npos);
  Diagnostics diagnostics;
  CHECK_FALSE(load_model_preset("lama-7b", presets, {"study.yaml", 3, 17}, diagnostics));
  CHECK(diagnostics.text() ==
        "study.yaml:3:17: error: there is no model preset 'lama-7b'\n"
        "        did you mean 'llama-7b'?\n");
}

TEST_CASE("a config.json is named after its folder, and a missing one is reported", "[model]") {
  Diagnostics diagnostics;
  CHECK(load_model(presets + "/llama-7b.json", diagnostics)->name == "llama-7b");
  CHECK_FALSE(load_model("nowhere/config.json", diagnostics));
  CHECK(diagnostics.text() == "nowhere/config.json: error: there is no such file\n");
}

}  // namespace
}  // namespace hdpsim
