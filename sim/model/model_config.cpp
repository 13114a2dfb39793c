#include "sim/model/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include "sim/document/reader.h"

namespace hdpsim {
namespace {

constexpr Range positive{1, std::numeric_limits<double>::infinity()};

/// How a family of configurations spells what we ask for, and what its models have in common.
struct Family {
  std::string_view architecture;
  std::string_view hidden;
  std::string_view layers;
  std::string_view heads;
  std::string_view kv_heads;  ///< Empty: as many as query heads.
  std::string_view ffn;
  std::string_view positions;  ///< Empty: no learned positions.
  bool gated_mlp;
  bool biases;
  bool tied;  ///< When the file does not say.
  bool experts;
};

constexpr Family llama{"LlamaForCausalLM",
                       "hidden_size",
                       "num_hidden_layers",
                       "num_attention_heads",
                       "num_key_value_heads",
                       "intermediate_size",
                       "",
                       true,
                       false,
                       false,
                       false};

constexpr Family like_llama(std::string_view architecture, bool experts) {
  Family family = llama;
  family.architecture = architecture;
  family.experts = experts;
  return family;
}

constexpr std::array<Family, 7> families{{
    llama,
    like_llama("MistralForCausalLM", false),
    like_llama("Qwen2ForCausalLM", false),
    like_llama("MixtralForCausalLM", true),
    {"GPT2LMHeadModel", "n_embd", "n_layer", "n_head", "", "n_inner", "n_positions", false, true, true, false},
    {"GPTNeoXForCausalLM", "hidden_size", "num_hidden_layers", "num_attention_heads", "", "intermediate_size", "",
     false, true, false, false},
    {"MPTForCausalLM", "d_model", "n_layers", "n_heads", "", "", "max_seq_len", false, true, true, false},
}};

const Family* find_family(MapReader& map) {
  const Value* architectures = map.require("architectures");
  if (architectures == nullptr) return nullptr;
  if (!architectures->is_sequence() || architectures->items.size() != 1) {
    map.diagnostics().error(architectures->position, "'architectures' must be a list of one name");
    return nullptr;
  }
  std::vector<std::string> known;
  known.reserve(families.size());
  for (const Family& family : families) known.emplace_back(family.architecture);
  const auto choice = read_choice(architectures->items.front(), "known architecture", known, map.diagnostics());
  return choice ? &families.at(*choice) : nullptr;
}

class ConfigReader {
 public:
  ConfigReader(MapReader& map, const Family& family) : map_(map), family_(family) {}

  Transformer read() {
    model_.gated_mlp = family_.gated_mlp;
    model_.biases = family_.biases;
    model_.hidden = required(family_.hidden);
    model_.layers = required(family_.layers);
    model_.heads = required(family_.heads);
    model_.kv_heads = family_.kv_heads.empty() ? model_.heads : optional(family_.kv_heads, model_.heads);
    model_.vocabulary = required("vocab_size");
    model_.tied_embeddings = map_.optional<bool>("tie_word_embeddings", family_.tied);
    read_ffn();
    if (family_.architecture == "MPTForCausalLM") {
      read_mpt();
    } else if (!family_.positions.empty()) {
      model_.learned_positions = required(family_.positions);
    }
    if (family_.experts) read_experts();
    read_head_dim();
    return model_;
  }

 private:
  std::int64_t required(std::string_view key) { return map_.required_in<std::int64_t>(key, positive).value_or(0); }
  std::int64_t optional(std::string_view key, std::int64_t fallback) {
    return map_.optional_in<std::int64_t>(key, positive).value_or(fallback);
  }

  void read_ffn() {
    constexpr std::int64_t usual_ratio = 4;
    if (family_.ffn.empty()) {
      model_.ffn_hidden = model_.hidden * optional("expansion_ratio", usual_ratio);
    } else if (family_.architecture == "GPT2LMHeadModel") {
      model_.ffn_hidden = optional(family_.ffn, usual_ratio * model_.hidden);
    } else {
      model_.ffn_hidden = required(family_.ffn);
    }
  }

  void read_mpt() {
    model_.biases = !map_.optional<bool>("no_bias", false);
    bool relative_positions = false;
    if (const Value* value = map_.find("attn_config")) {
      MapReader attention(*value, "'attn_config'", map_.diagnostics());
      const bool alibi = attention.optional<bool>("alibi", false);
      const bool rope = attention.optional<bool>("rope", false);
      relative_positions = alibi || rope;
      model_.kv_heads = attention.optional_in<std::int64_t>("kv_n_heads", positive).value_or(model_.kv_heads);
    }
    const bool learned = map_.optional<bool>("learned_pos_emb", true);
    if (learned && !relative_positions) model_.learned_positions = required(family_.positions);
  }

  void read_experts() {
    MixtureOfExperts experts;
    experts.experts = required("num_local_experts");
    experts.experts_per_token = required("num_experts_per_tok");
    experts.expert_hidden = model_.ffn_hidden;
    if (experts.experts_per_token > experts.experts) {
      error_at("num_experts_per_tok",
               fmt::format("{} experts a token, but the model has {}", experts.experts_per_token, experts.experts));
    }
    model_.moe = experts;
  }

  void read_head_dim() {
    const std::int64_t stated = optional("head_dim", 0);
    if (model_.heads == 0 || model_.hidden == 0) return;
    if (stated == 0 && model_.hidden % model_.heads != 0) {
      error_at(family_.heads, fmt::format("{} heads do not divide the hidden size {}", model_.heads, model_.hidden),
               "state 'head_dim' if the heads do not share the hidden size");
    }
    model_.head_dim = stated != 0 ? stated : model_.hidden / model_.heads;
    if (model_.kv_heads != 0 && model_.heads % model_.kv_heads != 0) {
      error_at(family_.kv_heads,
               fmt::format("{} key-value heads do not divide {} heads", model_.kv_heads, model_.heads));
    }
  }

  void error_at(std::string_view key, std::string message, std::string help = {}) {
    const Value* value = map_.value().find(key);
    map_.diagnostics().error(value != nullptr ? value->position : map_.value().position, std::move(message),
                             std::move(help));
  }

  MapReader& map_;
  const Family& family_;
  Transformer model_;
};

std::string preset_path(const std::string& directory, const std::string& name) {
  return (std::filesystem::path(directory) / (name + ".json")).string();
}

void change(Value& config, const std::vector<Value::Entry>& changes, const std::string& name,
            Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (const auto& entry : config.entries) known.push_back(entry.key);
  for (const auto& [key, position, value] : changes) {
    if (config.find(key) == nullptr) {
      diagnostics.error(position, fmt::format("the configuration of {} has no key '{}'", name, key),
                        suggestion(key, known));
    } else {
      config.set(key, value);
    }
  }
}

std::string name_of(const std::filesystem::path& path) {
  if (path.stem() == "config" && path.has_parent_path()) return path.parent_path().filename().string();
  return path.stem().string();
}

}  // namespace

std::optional<Transformer> read_model(const Value& config, const std::string& name, Diagnostics& diagnostics) {
  Diagnostics problems;
  MapReader map(config, "the model", problems);
  std::optional<Transformer> model;
  if (const Family* family = find_family(map)) model = ConfigReader(map, *family).read();
  diagnostics.append(problems);
  if (!model || !problems.empty()) return std::nullopt;
  model->name = name;
  return model;
}

std::optional<Transformer> load_model(const std::string& path, Diagnostics& diagnostics) {
  Diagnostics problems;
  const Value config = load_document(path, problems);
  const bool readable = problems.empty();
  diagnostics.append(problems);
  return readable ? read_model(config, name_of(path), diagnostics) : std::nullopt;
}

std::optional<Transformer> load_model_preset(const std::string& name, const std::string& directory,
                                             const Position& asked_at, Diagnostics& diagnostics,
                                             const std::vector<Value::Entry>& changes) {
  const std::vector<std::string> names = model_preset_names(directory);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    diagnostics.error(asked_at, fmt::format("there is no model preset '{}'", name), suggestion(name, names));
    return std::nullopt;
  }
  Diagnostics problems;
  Value config = load_document(preset_path(directory, name), problems);
  change(config, changes, name, problems);
  const bool readable = problems.empty();
  diagnostics.append(problems);
  return readable ? read_model(config, name, diagnostics) : std::nullopt;
}

std::vector<std::string> model_preset_names(const std::string& directory) {
  std::vector<std::string> names;
  if (!std::filesystem::is_directory(directory)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool check_supported(const Transformer& model, const Position& asked_at, Diagnostics& diagnostics) {
  if (!model.moe) return true;
  diagnostics.unsupported(asked_at,
                          fmt::format("'{}' has {} experts: mixture-of-experts models cannot be simulated yet",
                                      model.name, model.moe->experts),
                          "choose a dense model");
  return false;
}

}  // namespace hdpsim
