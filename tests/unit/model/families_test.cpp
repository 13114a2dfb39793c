#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <span>
#include <string>

#include "sim/model/impl/near_architecture.h"
#include "sim/model/kept_tensors.h"
#include "sim/model/layers.h"
#include "sim/model/parameters.h"
#include "sim/model/shares.h"
#include "tests/support/model_presets.h"

namespace hdpsim {
namespace {

using test::preset;

constexpr double billion = 1e9;

double billions(std::int64_t count) {
  return static_cast<double>(count) / billion;
}

// A preset without the layers that predict further tokens, which publications leave out.
Transformer main_model(const std::string& name) {
  Diagnostics diagnostics;
  const bool predicts = preset(name).predictions > 1;
  const char* key = name.starts_with("qwen") ? "mtp_num_hidden_layers" : "num_nextn_predict_layers";
  const std::vector<Value::Entry> changes = {{key, {}, Value::scalar("0")}};
  const auto model = load_model_preset(name, HDPSIM_SOURCE_DIR "/configs/models", {}, diagnostics,
                                       predicts ? changes : std::vector<Value::Entry>{});
  REQUIRE(model.has_value());
  return *model;
}

// Whether a number is published so: rounded or cut to the digits that are given.
bool is_written(double value, double published) {
  double digit = 1;
  while (std::abs(published / digit - std::round(published / digit)) > 1e-6) digit /= 10;
  return std::abs(std::round(value / digit) * digit - published) < digit / 2 ||
         std::abs(std::floor(value / digit) * digit - published) < digit / 2;
}

std::int64_t table(const Transformer& model) {
  return model.vocabulary * model.hidden;
}

// Layers of a model by what makes them: "3 dense, 58 experts", with "joins" and how tokens are mixed.
std::string layers_of(const Transformer& model) {
  std::string text;
  for (const LayerRun& run : layer_runs(model)) {
    const Transformer kind = of_kind(model, run.kind);
    text += (text.empty() ? "" : ", ") + std::to_string(run.count);
    if (kind.linear) text += " linear";
    if (kind.window > 0) text += " window";
    if (kind.attention_chunk > 0) text += " chunk";
    if (kind.heads > 0 && kind.window == 0 && kind.attention_chunk == 0) text += " full";
    if (kind.moe) text += " experts";
    if (!kind.moe && kind.ffn_hidden > 0) text += " mlp";
    if (kind.indexer) text += scores_keys(kind) ? " indexed" : " sharing";
    if (kind.joins) text += " joins";
  }
  return text;
}

TEST_CASE("dense models have as many parameters as their checkpoints", "[families]") {
  struct Row {
    const char* name;
    double published;  // in billions, as the files of the checkpoint add up or the model card says
  };
  for (const Row& row : {Row{"llama3.1-405b", 405.85},
                         {"yi-34b", 34.39},
                         {"mistral-large", 122.61},
                         {"qwen2-7b", 7.616},
                         {"qwen2.5-72b", 72.71},
                         {"qwen3-32b", 32.76},
                         {"gemma-2-27b", 27.23},
                         {"gemma-3-27b", 27.43 - 0.42},  // without its encoder of images
                         {"gemma-3-4b", 4.30 - 0.42},    // likewise
                         {"glm-4-9b", 9.40},
                         {"glm-4-32b", 32.57},
                         {"phi-3-mini", 3.82},
                         {"phi-4", 14.66},
                         {"olmo-2-13b", 13.72},
                         {"falcon-7b", 7.217 - 0.295},  // the files hold the one table twice
                         {"falcon-40b", 41.84 - 0.533},
                         {"command-r-plus", 103.81},
                         {"command-a", 111.06},
                         {"granite-3-8b", 8.17},
                         {"starcoder2-15b", 15.96 - 0.30},  // the files hold the one table twice
                         {"internlm2-20b", 19.86},
                         {"internlm3-8b", 8.80},
                         {"baichuan2-13b", 13.90},
                         {"exaone-4.0-32b", 32.0},
                         {"qwen3-vl-32b", 32.76},           // its language model is that of Qwen3-32B
                         {"qwen3.5-27b", 27.78 - 0.46}}) {  // without its encoder of images
    INFO(row.name);
    CHECK(billions(parameter_count(preset(row.name))) == Approx(row.published).epsilon(0.01));
  }
}

TEST_CASE("models with experts have as many parameters, and as many active ones, as published", "[families]") {
  struct Row {
    const char* name;
    double total;  // in billions
    double active;
    int tables;  // tables of words that the active count holds: both, the output's, or none
  };
  for (const Row& row :
       {Row{"deepseek-v2", 236, 21, 2},       {"deepseek-v3", 671, 37, 1},       {"deepseek-r1", 671, 37, 1},
        {"qwen3-235b-a22b", 235, 22, 2},      {"qwen3-30b-a3b", 30.5, 3.3, 2},   {"gpt-oss-120b", 116.83, 5.13, 1},
        {"gpt-oss-20b", 20.91, 3.61, 1},      {"glm-4.5", 355, 32, 0},           {"glm-5.2", 744, 40, 1},
        {"llama4-maverick", 400, 17, 2},      {"minimax-text-01", 456, 45.9, 0}, {"minimax-m1", 456, 45.9, 0},
        {"jamba-v0.1", 51.6, 12, 2},          {"granite-4-small", 32, 9, 1},     {"qwen3-vl-30b-a3b", 30.5, 3.3, 2},
        {"qwen3.5-397b-a17b", 397, 17, 2},    {"minimax-m2.7", 230, 10, 1},      {"nemotron-3-nano", 31.6, 3.2, 1},
        {"nemotron-3-super", 120.6, 12.7, 2}, {"nemotron-3-ultra", 550, 55, 1},  {"step3", 316, 38, 1}}) {
    INFO(row.name);
    const Transformer model = main_model(row.name);
    const std::int64_t left_out = (model.tied_embeddings ? 1 : 2) - row.tables;
    const std::int64_t active = active_parameter_count(model) - left_out * table(model);
    CHECK(billions(parameter_count(model)) == Approx(row.total).epsilon(0.01));
    CHECK(is_written(billions(active), row.active));
  }
}

TEST_CASE("where a publication counts otherwise, the difference is known", "[families]") {
  // The paper of Kimi K2 says 1.04 trillion and 32.6 billion active; the files of its checkpoint hold 1,026.4 billion.
  const Transformer kimi = preset("kimi-k2");
  CHECK(billions(parameter_count(kimi)) == Approx(1026.4).epsilon(0.001));
  CHECK(billions(active_parameter_count(kimi)) == Approx(32.6).epsilon(0.01));
  // Qwen3-Next-80B-A3B: 80 billion and 3 billion active, of which its card says that tables do not count.
  const Transformer next = preset("qwen3-next-80b-a3b");
  CHECK(billions(parameter_count(next)) == Approx(80).epsilon(0.01));
  CHECK(std::round(billions(active_parameter_count(next) - 2 * table(next))) == 3);
  // Scout: 109 billion with an encoder of images, of which the files hold 108.64 and the encoder 0.87.
  const Transformer scout = preset("llama4-scout");
  CHECK(billions(parameter_count(scout)) == Approx(108.64 - 0.87).epsilon(0.01));
  CHECK(std::round(billions(active_parameter_count(scout))) == 17);
  // K2.5 is the language model of K2 behind an encoder of images.
  CHECK(parameter_count(preset("kimi-k2.5")) == parameter_count(kimi));
  // The files of Qwen3.5-35B-A3B hold 35.95 billion, of which 0.45 are an encoder of images.
  CHECK(billions(parameter_count(preset("qwen3.5-35b-a3b"))) == Approx(35.95 - 0.45).epsilon(0.001));
  // MiMo-7B names itself after whole billions and has a layer that predicts a further token beside them: products of
  // queries, keys and values with their biases, of attention's output and of the MLP, two norms; two tables.
  const std::int64_t h = 4096;
  const std::int64_t layer = (h + 1) * (h + 2 * 1024) + h * h + 3 * h * 11'008 + 2 * h;
  CHECK(parameter_count(main_model("mimo-7b")) == 36 * layer + (2 * 151'680 + 1) * h);
  CHECK(parameter_count(preset("mimo-7b")) == 37 * layer + 2 * h * h + 2 * h + (2 * 151'680 + 1) * h);
  // Nemotron-H names itself after whole billions.
  CHECK(std::round(billions(parameter_count(preset("nemotron-h-8b")))) == 8);
  CHECK(std::round(billions(parameter_count(preset("nemotron-h-56b")))) == 56);
}

TEST_CASE("a layer that predicts further tokens is a layer behind the others, and a pass through the head",
          "[families]") {
  const Transformer model = preset("deepseek-v3");
  const Transformer main = main_model("deepseek-v3");
  CHECK(main.layers == 61);
  CHECK(model.layers == 62);
  CHECK(model.predictions == 2);
  CHECK(layers_of(model) == "3 full mlp, 58 full experts, 1 full experts joins");
  // DeepSeek-V3's report: 14 billion with both tables, which the module shares with the main model.
  const double module = billions(parameter_count(model) - parameter_count(main));
  CHECK(module == Approx(14 - 2 * billions(table(model))).epsilon(0.05));
  CHECK(training_linear_flops(model, 1).count() - training_linear_flops(main, 1).count() >
        6 * static_cast<double>(table(model)));
}

TEST_CASE("every family's layers alternate as its files say", "[families]") {
  CHECK(layers_of(preset("gemma-2-27b")) == "23 window mlp, 23 full mlp");
  CHECK(layers_of(preset("gemma-3-27b")) == "10 full mlp, 52 window mlp");
  CHECK(layers_of(preset("gpt-oss-120b")) == "18 window experts, 18 full experts");
  CHECK(layers_of(preset("command-a")) == "48 window mlp, 16 full mlp");
  CHECK(layers_of(preset("llama4-scout")) == "36 chunk experts, 12 full experts");
  CHECK(layers_of(preset("llama4-maverick")) == "12 chunk experts, 24 chunk mlp, 12 full experts");
  CHECK(layers_of(preset("qwen3-next-80b-a3b")) == "36 linear experts, 12 full experts");
  CHECK(layers_of(preset("minimax-text-01")) == "70 linear experts, 10 full experts");
  CHECK(layers_of(preset("jamba-v0.1")) == "4 full mlp, 12 linear mlp, 16 linear experts");
  CHECK(layers_of(preset("granite-4-small")) == "4 full experts, 36 linear experts");
  CHECK(layers_of(preset("nemotron-h-8b")) == "4 full, 24 linear, 24 mlp");
  CHECK(layers_of(preset("starcoder2-15b")) == "40 window mlp");
  CHECK(layers_of(main_model("qwen3.5-27b")) == "48 linear mlp, 16 full mlp");
  CHECK(layers_of(main_model("qwen3.5-397b-a17b")) == "45 linear experts, 15 full experts");
  CHECK(layers_of(preset("exaone-4.0-32b")) == "48 window mlp, 16 full mlp");
  CHECK(layers_of(preset("minimax-m2.7")) == "62 full experts");
  CHECK(layers_of(preset("nemotron-3-nano")) == "6 full, 23 linear, 23 experts");
  CHECK(layers_of(preset("qwen2.5-72b")) == "80 full mlp");  // its windows are switched off
  CHECK(layers_of(main_model("deepseek-v3.2")) == "3 full mlp indexed, 58 full experts indexed");
  // Layers 0, 1, 2, 6, 10, ... 74 score keys.
  CHECK(layers_of(preset("glm-5.2")).ends_with("1 full experts indexed joins"));  // of its own
  CHECK(layers_of(main_model("glm-5.2")) == "3 full mlp indexed, 18 full experts indexed, 57 full experts sharing");
}

TEST_CASE("a layer's branch is told by a letter or a word, and by which layers a further token is predicted",
          "[families]") {
  // Super has letters, and words stand for them in Ultra, whose number of layers is that of the words.
  CHECK(layers_of(main_model("nemotron-3-super")) == "8 full, 40 linear, 40 experts");
  CHECK(layers_of(main_model("nemotron-3-ultra")) == "12 full, 48 linear, 48 experts");
  CHECK(preset("nemotron-3-ultra").layers == 108 + 2);
  // Behind them attention and experts, of which the first takes the embedding of the next token.
  CHECK(layers_of(preset("nemotron-3-super")) == "8 full, 40 linear, 1 full joins, 41 experts");
  CHECK(preset("nemotron-3-super").predictions == 2);
}

TEST_CASE("experts that work in a latent are as wide as it, and two products of a layer lead to it and back",
          "[families]") {
  const Transformer model = main_model("nemotron-3-super");
  REQUIRE(model.moe.has_value());
  CHECK(model.moe->latent == 1024);
  CHECK(expert_parameter_count(model) == 2 * 1024 * 2688);  // its MLPs have no gate
  const std::int64_t h = 4096;
  const std::int64_t latents = 2 * h * 1024;
  const std::int64_t router = h * 512;
  const std::int64_t shared = 2 * h * 5376;
  CHECK(layer_parameter_count(model) == 512 * expert_parameter_count(model) + latents + router + shared + h);
}

TEST_CASE("an indexer adds its queries, a key, a weight for each head and a norm to every layer that scores keys",
          "[families]") {
  const Transformer model = main_model("deepseek-v3.2");
  const Transformer dense = main_model("deepseek-v3");
  const std::int64_t h = 7168;
  const std::int64_t indexer = 64 * 128 * 1536 + 128 * h + 64 * h + 2 * 128;
  CHECK(parameter_count(model) - parameter_count(dense) == 61 * indexer);
  Diagnostics none;
  const auto without = load_model_preset("deepseek-v3.2", HDPSIM_SOURCE_DIR "/configs/models", {}, none,
                                         {{"index_topk", {}, Value::scalar("0")}});
  REQUIRE(without.has_value());
  CHECK(parameter_count(*without) == parameter_count(preset("deepseek-v3")));
}

TEST_CASE("which layers score keys is told by words, letters or a period", "[families]") {
  const auto layers = [](const char* key, const Value& value, Diagnostics& diagnostics) {
    Value config = load_document(HDPSIM_SOURCE_DIR "/configs/models/glm-5.2.json", diagnostics);
    config.set("num_hidden_layers", Value::scalar("6"));
    config.set("num_nextn_predict_layers", Value::scalar("0"));
    config.set("first_k_dense_replace", Value::scalar("0"));
    config.set(key, value);
    const auto model = read_model(config, "glm-5.2", diagnostics);
    return model ? layers_of(*model) : "";
  };
  Diagnostics none;
  CHECK(layers("index_topk_freq", Value::scalar("1"), none) == "6 full experts indexed");
  CHECK(layers("index_topk_freq", Value::scalar("2"), none) == "4 full experts indexed, 2 full experts sharing");
  Value words = Value::sequence({});
  for (const char* word : {"full", "shared", "shared", "full", "shared", "full"})
    words.items.push_back(Value::scalar(word));
  CHECK(layers("indexer_types", words, none) == "3 full experts sharing, 3 full experts indexed");
  CHECK(layers("index_topk_pattern", Value::scalar("FSSSFS"), none) ==
        "2 full experts indexed, 4 full experts sharing");
  for (const char* wrong : {"FXSSFS", "SFFFFF", "FFF"}) {
    Diagnostics told;
    CHECK(layers("index_topk_pattern", Value::scalar(wrong), told).empty());
    CHECK_THAT(told.text(), Catch::Contains("index_topk_pattern") || Catch::Contains("the first layer takes"));
  }
  CHECK(layers("index_skip_topk_offset", Value::scalar("1"), none) == "2 full experts indexed, 4 full experts sharing");
  CHECK(none.text().empty());
}

TEST_CASE("no query chooses more keys than the longest sequence has", "[families][indexer]") {
  Transformer model = preset("glm-5.2");
  bound_choices(model, 1000);
  REQUIRE(!model.others.empty());
  CHECK(model.indexer->keys == 1000);
  CHECK(std::all_of(model.others.begin(), model.others.end(),
                    [](const Layer& layer) { return layer.indexer->keys == 1000; }));
  bound_choices(model, 5000);
  CHECK(model.indexer->keys == 1000);
}

TEST_CASE("an indexer that is too wide, or has no latents to choose among, is refused", "[families]") {
  const auto problems = [](const char* key, const char* value) {
    Diagnostics told;
    const std::vector<Value::Entry> changes = {{key, {}, Value::scalar(value)}};
    CHECK_FALSE(load_model_preset("deepseek-v3.2", HDPSIM_SOURCE_DIR "/configs/models", {}, told, changes));
    return told.text();
  };
  CHECK_THAT(problems("index_n_heads", "100000"), Catch::Contains("an indexer with heads of a width of 12800000"));
  CHECK_THAT(problems("kv_lora_rank", "1000000"), Catch::Contains("heads that read latents with a width"));
  CHECK_THAT(problems("kv_lora_rank", "0"), Catch::Contains("an indexer chooses among latents"));
}

TEST_CASE("queries that are made through a latent take two products and a norm in place of one product", "[families]") {
  // Step-3: 64 heads of 256 through a latent of 2,048, which all share one head of keys and of values.
  const Transformer model = preset("step3");
  CHECK(model.query_latent == 2048);
  CHECK(layers_of(model) == "56 full experts, 5 full mlp");
  const std::int64_t hidden = model.hidden;
  const std::int64_t queries = 64 * 256;
  const std::int64_t products = hidden * 2048 + 2048 * queries + 2 * hidden * 256 + queries * hidden;
  const Transformer dense = of_kind(model, 1);
  const std::int64_t mlp = 3 * hidden * 18'432;
  CHECK(layer_parameter_count(dense) == products + 2048 + mlp + 2 * hidden);
  Transformer direct = dense;
  direct.query_latent = 0;
  // The latent is kept before and behind its norm, in two bytes a column.
  CHECK(kept_bytes(kept_tensors(dense, {}), {.tokens = 100}) - kept_bytes(kept_tensors(direct, {}), {.tokens = 100}) ==
        Bytes(100 * 2 * 2 * 2048));
  const Recipe again{.recompute = {LayerModule::qkv}};
  CHECK(kept_tensors(dense, again).size() == kept_tensors(direct, again).size());
}

TEST_CASE("latent attention has the widths of its files", "[families]") {
  const Transformer model = preset("deepseek-v3");
  REQUIRE(model.latent.has_value());
  CHECK(*model.latent == LatentAttention{.query_rank = 1536, .kv_rank = 512, .rotated = 64});
  CHECK(model.head_dim == 128 + 64);
  CHECK(model.value_dim == 128);
  CHECK(model.moe->shared_hidden == 2048);
}

TEST_CASE("of a list of layers that is too long the first count, and one that is too short is told", "[families]") {
  const auto with_layers = [](const char* name, const char* layers, Diagnostics& diagnostics) {
    return load_model_preset(name, HDPSIM_SOURCE_DIR "/configs/models", {}, diagnostics,
                             {{"num_hidden_layers", {}, Value::scalar(layers)}});
  };
  Diagnostics none;
  CHECK(layers_of(*with_layers("gpt-oss-20b", "5", none)) == "2 full experts, 3 window experts");
  CHECK(layers_of(*with_layers("nemotron-h-8b", "9", none)) == "4 linear, 1 full, 4 mlp");
  CHECK(layers_of(*with_layers("minimax-text-01", "9", none)) == "1 full experts, 8 linear experts");
  CHECK(none.empty());
  Diagnostics short_of;
  CHECK_FALSE(with_layers("gpt-oss-20b", "25", short_of));
  CHECK(short_of.text().find("'layer_types' is about 24 layers, but the model has 25") != std::string::npos);
}

TEST_CASE("a family reads every key that describes the shape of its shipped models", "[families]") {
  const std::string folder = HDPSIM_SOURCE_DIR "/configs/models";
  for (const std::string& name : model_preset_names(folder)) {
    CAPTURE(name);
    Diagnostics none;
    const Value config = load_document(folder + "/" + name + ".json", none);
    const std::string& family = config.find("architectures")->items.front().text;
    const std::span<const Architecture> all = architectures();
    const auto own =
        std::find_if(all.begin(), all.end(), [&](const Architecture& each) { return each.name == family; });
    REQUIRE(own != all.end());
    CHECK(resemblance(*own, config).unread == std::vector<std::string>{});
  }
}

TEST_CASE("a configuration is read as one of another family where the study says so", "[families]") {
  Diagnostics diagnostics;
  const auto model = load_model_preset("olmo-2-13b", HDPSIM_SOURCE_DIR "/configs/models", {}, diagnostics,
                                       {{"architecture", {}, Value::scalar("LlamaForCausalLM")}});
  REQUIRE(model.has_value());
  CHECK_FALSE(model->qk_norm);
  CHECK(model->layers == 40);
}

TEST_CASE("what a file describes and a model does not have is said", "[families]") {
  CHECK(preset("gemma-3-27b").left_out == std::vector<std::string>{"its encoder of 'vision_config'"});
  CHECK(preset("llama4-scout").left_out.size() == 1);
  CHECK(preset("deepseek-v3").left_out.empty());
  CHECK(preset("llama3.1-405b").left_out.empty());
  CHECK(preset("minimax-m2.7").left_out.at(0).find("3 modules that predict further tokens") != std::string::npos);
}

TEST_CASE("the table of families names every architecture that is known", "[families]") {
  std::ifstream file(HDPSIM_SOURCE_DIR "/configs/models/README.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const KnownArchitecture& known : known_architectures()) {
    const std::string row = "| `" + std::string(known.name) + "` | " + std::string(known.models) + " |";
    INFO(row);
    CHECK(text.find(row) != std::string::npos);
  }
  std::set<std::string_view> names;
  for (const KnownArchitecture& known : known_architectures()) CHECK(names.insert(known.name).second);
}

}  // namespace
}  // namespace hdpsim
