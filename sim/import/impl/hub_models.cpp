#include "sim/import/impl/hub_models.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/import/impl/key_rules.h"
#include "sim/model/experts.h"
#include "sim/model/layers.h"
#include "sim/model/model_config.h"

namespace hdpsim {
namespace {

/// The shape of a dense model, from its config.json on the hub. Names are letters and digits.
struct HubShape {
  std::string_view names;  ///< With blanks between them.
  std::string_view architecture;
  int hidden;
  int mlp;
  int layers;
  int heads;
  int kv_heads;
  int head;  ///< Numbers of a head.
  int vocabulary;
  bool is_tied = false;
};

constexpr std::string_view llama = "LlamaForCausalLM";
constexpr std::string_view mistral = "MistralForCausalLM";
constexpr std::string_view qwen2 = "Qwen2ForCausalLM";
constexpr std::string_view qwen3 = "Qwen3ForCausalLM";
constexpr auto hub_shapes = std::to_array<HubShape>({
    {"llama7b llama27b vicuna7b", llama, 4096, 11008, 32, 32, 32, 128, 32000},
    {"llama13b llama213b vicuna13b", llama, 5120, 13824, 40, 40, 40, 128, 32000},
    {"llama30b", llama, 6656, 17920, 60, 52, 52, 128, 32000},
    {"llama65b", llama, 8192, 22016, 80, 64, 64, 128, 32000},
    {"llama70b llama270b", llama, 8192, 28672, 80, 64, 8, 128, 32000},
    {"codellama7b", llama, 4096, 11008, 32, 32, 32, 128, 32016},
    {"codellama13b", llama, 5120, 13824, 40, 40, 40, 128, 32016},
    {"codellama34b", llama, 8192, 22016, 48, 64, 8, 128, 32000},
    {"llama38b llama318b deepseekr1llama8b hermes3llama318b", llama, 4096, 14336, 32, 32, 8, 128, 128256},
    {"llama370b llama3170b llama3370b deepseekr1llama70b", llama, 8192, 28672, 80, 64, 8, 128, 128256},
    {"llama31405b", llama, 16384, 53248, 126, 128, 8, 128, 128256},
    {"llama321b", llama, 2048, 8192, 16, 32, 8, 64, 128256, true},
    {"llama323b", llama, 3072, 8192, 28, 24, 8, 128, 128256, true},
    {"tinyllama tinyllama11b", llama, 2048, 5632, 22, 32, 4, 64, 32000},
    {"smollm135m smollm2135m", llama, 576, 1536, 30, 9, 3, 64, 49152, true},
    {"smollm360m smollm2360m", llama, 960, 2560, 32, 15, 5, 64, 49152, true},
    {"smollm17b smollm217b", llama, 2048, 8192, 24, 32, 32, 64, 49152, true},
    {"yi6b yi156b", llama, 4096, 11008, 32, 32, 4, 128, 64000},
    {"deepseekllm7b", llama, 4096, 11008, 30, 32, 32, 128, 102400},
    {"mistral7b", mistral, 4096, 14336, 32, 32, 8, 128, 32000},
    {"mistral7bv03", mistral, 4096, 14336, 32, 32, 8, 128, 32768},
    {"mistralnemo mistralnemo12b", mistral, 5120, 14336, 40, 32, 8, 128, 131072},
    {"mistralsmall24b mistralsmall3124b magistralsmall devstralsmall", mistral, 5120, 32768, 40, 32, 8, 128, 131072},
    {"qwen205b qwen2505b qwen25coder05b", qwen2, 896, 4864, 24, 14, 2, 64, 151936, true},
    {"qwen215b qwen2515b qwen25math15b qwen25coder15b qwen2vl2b", qwen2, 1536, 8960, 28, 12, 2, 128, 151936, true},
    {"deepseekr1qwen15b", qwen2, 1536, 8960, 28, 12, 2, 128, 151936},
    {"qwen253b qwen25coder3b qwen25vl3b", qwen2, 2048, 11008, 36, 16, 2, 128, 151936, true},
    {"qwen27b qwen257b qwen25coder7b deepseekr1qwen7b qwen25math7b qwen2vl7b qwen25vl7b", qwen2, 3584, 18944, 28, 28, 4,
     128, 152064},
    {"qwen2514b qwen25coder14b deepseekr1qwen14b deepcoder14b", qwen2, 5120, 13824, 48, 40, 8, 128, 152064},
    {"qwen2532b qwen25coder32b qwen25vl32b deepseekr1qwen32b qwq32b", qwen2, 5120, 27648, 64, 40, 8, 128, 152064},
    {"qwen272b qwen2572b qwen25math72b qwen2vl72b qwen25vl72b", qwen2, 8192, 29568, 80, 64, 8, 128, 152064},
    {"qwen306b", qwen3, 1024, 3072, 28, 16, 8, 128, 151936, true},
    {"qwen317b qwen3vl2b", qwen3, 2048, 6144, 28, 16, 8, 128, 151936, true},
    {"qwen34b qwen3vl4b", qwen3, 2560, 9728, 36, 32, 8, 128, 151936, true},
    {"qwen38b qwen3vl8b deepseekr10528qwen38b", qwen3, 4096, 12288, 36, 32, 8, 128, 151936},
    {"qwen314b", qwen3, 5120, 17408, 40, 40, 8, 128, 151936},
    {"qwen332b", qwen3, 5120, 25600, 64, 64, 8, 128, 151936},
});

// Shipped models under other names than those of the hub.
constexpr auto shipped_names = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"nemotron3nano30ba3b", "nemotron-3-nano"},
    {"nemotron3super120ba12b", "nemotron-3-super"},
    {"llama4scout17b16e", "llama4-scout"},
    {"llama4maverick17b128e", "llama4-maverick"},
    {"mistrallarge", "mistral-large"},
    {"deepseekr1", "deepseek-r1"},
    {"phi3mini4k", "phi-3-mini"},
    {"phi3mini128k", "phi-3-mini"},
});

// Words of names that change no shape: who made it, what it was trained for, in which format it is kept.
constexpr std::array<std::string_view, 40> idle_words = {
    "instruct", "chat", "base",    "hf",   "it",   "bf16",  "fp16",      "fp8",      "bnb",     "4bit",
    "8bit",     "nf4",  "awq",     "gptq", "int4", "int8",  "meta",      "nvidia",   "unsloth", "preview",
    "thinking", "sft",  "mixture", "dpo",  "v0.1", "v0.2",  "v1.0",      "v2.0",     "v1.1",    "v1.5",
    "distill",  "gguf", "4k",      "128k", "32k",  "turbo", "embedding", "reranker", "nvfp4",   "dequantized"};

bool is_idle(std::string_view word) {
  const bool is_date = (word.size() == 4 || word.size() == 6) &&
                       std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return is_date || std::find(idle_words.begin(), idle_words.end(), word) != idle_words.end();
}

/// The letters of a name, of all its words, and of those that may change a shape.
std::array<std::string, 2> letters_of(std::string_view name) {
  while (name.ends_with('/')) name.remove_suffix(1);
  const std::string_view last = name.substr(name.find_last_of('/') + 1);
  std::array<std::string, 2> letters;
  for (std::size_t at = 0; at <= last.size();) {
    const std::size_t end = std::min(last.find_first_of("-_ ", at), last.size());
    std::string word;
    for (const char c : last.substr(at, end - at)) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    letters[0] += plain_letters(word);
    if (!is_idle(word)) letters[1] += plain_letters(word);
    at = end + 1;
  }
  return letters;
}

Value configuration_of(const HubShape& shape) {
  Value made = Value::map();
  Value architectures = Value::sequence();
  architectures.items.push_back(Value::scalar(std::string(shape.architecture)));
  made.set("architectures", std::move(architectures));
  put(made, "hidden_size", shape.hidden);
  put(made, "intermediate_size", shape.mlp);
  put(made, "num_hidden_layers", shape.layers);
  put(made, "num_attention_heads", shape.heads);
  put(made, "num_key_value_heads", shape.kv_heads);
  put(made, "head_dim", shape.head);
  put(made, "vocab_size", shape.vocabulary);
  put(made, "hidden_act", std::string("silu"));
  put_truth(made, "tie_word_embeddings", shape.is_tied);
  return made;
}

std::optional<NamedModel> described(const HubShape& shape) {
  NamedModel model{.value = {}, .layers = shape.layers};
  model.configuration = configuration_of(shape);
  return model;
}

std::optional<NamedModel> shipped(const std::string& preset, const Catalog& catalog) {
  Diagnostics none;
  Value value = Value::map();
  put(value, "preset", preset);
  return named_model_of(value, catalog, none);
}

std::optional<NamedModel> model_of_letters(const std::string& letters, const Catalog& catalog) {
  for (const HubShape& shape : hub_shapes) {
    const auto names = words_in(shape.names);
    if (std::find(names.begin(), names.end(), letters) != names.end()) return described(shape);
  }
  for (const auto& [name, preset] : shipped_names) {
    if (name == letters) return shipped(std::string(preset), catalog);
  }
  for (const std::string& preset : model_preset_names(catalog.models().string())) {
    if (plain_letters(preset) == letters) return shipped(preset, catalog);
  }
  return std::nullopt;
}

}  // namespace

std::optional<NamedModel> hub_model(const std::string& name, const Catalog& catalog) {
  constexpr std::string_view no_encoder = "the encoder of pictures and sounds, and its tokens, are not simulated";
  for (const std::string& letters : letters_of(name)) {
    if (letters.empty()) continue;
    auto model = model_of_letters(letters, catalog);
    if (!model) continue;
    if (letters.find("vl") != std::string::npos) model->unlike = no_encoder;
    return model;
  }
  return std::nullopt;
}

std::optional<NamedModel> named_model_of(const Value& model, const Catalog& catalog, Diagnostics& diagnostics) {
  const auto read = catalog.model(model, diagnostics);
  if (!read) return std::nullopt;
  return NamedModel{model, read->layers - (read->predictions - 1), expert_layers(*read, layer_runs(*read)) > 0};
}

}  // namespace hdpsim
