#include "sim/model/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/document/reader.h"
#include "sim/model/parameters.h"
#include "sim/model/work.h"

namespace hdpsim {
namespace {

// Some hundred times the largest trained models, and still such that the elements of one tensor of the longest
// micro-batch and the parameters of one layer fit 64 bits.
constexpr Range layer_range{1, 10'000};
constexpr Range hidden_range{1, 1e6};
constexpr Range head_range{1, 1e5};   // number and size of heads
constexpr Range width_range{1, 1e7};  // inner width of an MLP or of all experts of a token, and width of all heads
constexpr Range vocabulary_range{1, 1e7};
constexpr Range position_range{1, limits::most_tokens_of_sequence};
constexpr Range expert_range{1, 1e5};
constexpr Range chosen_range{1, 1000};  // experts per token
constexpr double most_parameters = 1e15;

/// The keys with which a family describes its experts. Its dense layers are listed one by one or given by a rule.
struct ExpertKeys {
  std::string_view experts;
  std::string_view hidden;         ///< Inner width of an expert; empty: that of the MLP.
  std::string_view shared;         ///< Experts that every token takes; empty: see shared_hidden.
  std::string_view shared_hidden;  ///< Inner width of all shared experts.
  std::string_view leading_dense;  ///< Number of dense layers at the front.
  std::string_view period;         ///< Period of layers with experts.
  std::int64_t phase;              ///< Layer i has experts if i + phase is a multiple of the period.
};

constexpr ExpertKeys mixtral_experts{"num_local_experts", "", "", "", "", "", 0};
constexpr ExpertKeys qwen2_experts{
    "num_experts", "moe_intermediate_size", "", "shared_expert_intermediate_size", "", "decoder_sparse_step", 1};
constexpr ExpertKeys qwen3_experts{"num_experts", "moe_intermediate_size", "", "", "", "decoder_sparse_step", 1};
constexpr ExpertKeys deepseek_experts{
    "n_routed_experts", "moe_intermediate_size", "n_shared_experts", "", "first_k_dense_replace", "moe_layer_freq", 0};

/// The keys of a family of configurations, and the properties that all of its models share.
struct Family {
  std::string_view architecture;
  std::string_view hidden;
  std::string_view layers;
  std::string_view heads;
  std::string_view kv_heads;  ///< Empty: the family has as many as query heads.
  std::string_view ffn;
  std::string_view positions;  ///< Empty: no learned positions.
  bool gated_mlp;
  bool biases;
  bool tied;  ///< Default for tied embeddings when the file does not say.
  const ExpertKeys* experts = nullptr;
  bool qkv_biases = false;
  bool qk_norm = false;
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
                       false};

constexpr Family like_llama(std::string_view architecture, const ExpertKeys* experts = nullptr) {
  Family family = llama;
  family.architecture = architecture;
  family.experts = experts;
  return family;
}

constexpr Family like_qwen2(std::string_view architecture, const ExpertKeys* experts = nullptr) {
  Family family = like_llama(architecture, experts);
  family.qkv_biases = true;
  return family;
}

constexpr Family like_qwen3(std::string_view architecture, const ExpertKeys* experts) {
  Family family = like_llama(architecture, experts);
  family.qk_norm = true;
  return family;
}

constexpr std::array<Family, 12> families{{
    llama,
    like_llama("MistralForCausalLM"),
    like_qwen2("Qwen2ForCausalLM"),
    like_llama("MixtralForCausalLM", &mixtral_experts),
    like_qwen2("Qwen2MoeForCausalLM", &qwen2_experts),
    like_qwen3("Qwen3MoeForCausalLM", &qwen3_experts),
    like_llama("DeepseekForCausalLM", &deepseek_experts),
    like_llama("DeepseekV2ForCausalLM", &deepseek_experts),
    like_llama("DeepseekV3ForCausalLM", &deepseek_experts),
    {"GPT2LMHeadModel", "n_embd", "n_layer", "n_head", "", "n_inner", "n_positions", false, true, true},
    {"GPTNeoXForCausalLM", "hidden_size", "num_hidden_layers", "num_attention_heads", "", "intermediate_size", "",
     false, true, false},
    {"MPTForCausalLM", "d_model", "n_layers", "n_heads", "", "", "max_seq_len", false, true, true},
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
    model_.qkv_biases = family_.qkv_biases;
    model_.qk_norm = family_.qk_norm;
    model_.hidden = required(family_.hidden, hidden_range);
    model_.layers = required(family_.layers, layer_range);
    model_.heads = required(family_.heads, head_range);
    model_.kv_heads = family_.kv_heads.empty() ? model_.heads : optional(family_.kv_heads, head_range, model_.heads);
    model_.vocabulary = required("vocab_size", vocabulary_range);
    model_.tied_embeddings = map_.optional<bool>("tie_word_embeddings", family_.tied);
    read_ffn();
    if (family_.architecture == "MPTForCausalLM") {
      read_mpt();
    } else if (!family_.positions.empty()) {
      model_.learned_positions = required(family_.positions, position_range);
    }
    if (family_.experts != nullptr) read_experts(*family_.experts);
    if (const Value* latent = map_.find("kv_lora_rank"); latent != nullptr && !latent->is_null()) {
      map_.diagnostics().unsupported(latent->position, "multi-head latent attention cannot be simulated yet",
                                     "choose a model with multi-head or grouped-query attention");
    }
    read_head_dim();
    check_widths();
    return model_;
  }

 private:
  std::int64_t required(std::string_view key, Range range) {
    return map_.required_in<std::int64_t>(key, range).value_or(0);
  }
  std::int64_t optional(std::string_view key, Range range, std::int64_t fallback) {
    return map_.optional_in<std::int64_t>(key, range).value_or(fallback);
  }

  // A whole number that may be 0.
  std::int64_t whole(std::string_view key, Range range) {
    return map_.optional_in<std::int64_t>(key, {0, range.most}).value_or(0);
  }

  void read_ffn() {
    constexpr std::int64_t usual_ratio = 4;
    if (family_.ffn.empty()) {
      model_.ffn_hidden = model_.hidden * optional("expansion_ratio", chosen_range, usual_ratio);
    } else if (family_.architecture == "GPT2LMHeadModel") {
      model_.ffn_hidden = optional(family_.ffn, width_range, usual_ratio * model_.hidden);
    } else {
      model_.ffn_hidden = required(family_.ffn, width_range);
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
      model_.kv_heads = attention.optional_in<std::int64_t>("kv_n_heads", head_range).value_or(model_.kv_heads);
    }
    const bool learned = map_.optional<bool>("learned_pos_emb", true);
    if (learned && !relative_positions) model_.learned_positions = required(family_.positions, position_range);
  }

  void read_experts(const ExpertKeys& keys) {
    MixtureOfExperts moe;
    moe.experts = required(keys.experts, expert_range);
    moe.experts_per_token = required("num_experts_per_tok", chosen_range);
    moe.expert_hidden = keys.hidden.empty() ? model_.ffn_hidden : required(keys.hidden, width_range);
    if (!keys.shared.empty()) moe.shared_hidden = whole(keys.shared, expert_range) * moe.expert_hidden;
    if (!keys.shared_hidden.empty()) {
      moe.shared_hidden = whole(keys.shared_hidden, width_range);
      moe.shared_gate = moe.shared_hidden > 0;
    }
    if (moe.experts_per_token > moe.experts && moe.experts > 0) {
      error_at("num_experts_per_tok",
               fmt::format("{} experts a token, but the model has {}", moe.experts_per_token, moe.experts));
    }
    read_dense_layers(keys, moe);
    model_.moe = std::move(moe);
  }

  void read_dense_layers(const ExpertKeys& keys, MixtureOfExperts& moe) {
    const std::int64_t leading = keys.leading_dense.empty() ? 0 : whole(keys.leading_dense, layer_range);
    const std::int64_t period = keys.period.empty() ? 1 : optional(keys.period, layer_range, 1);
    std::vector<std::int64_t> named;
    if (const Value* list = map_.find("mlp_only_layers")) {
      for (const Value& item : list->items) {
        if (const auto layer = read_in<std::int64_t>(item, "a layer", {0, layer_range.most}, map_.diagnostics()))
          named.push_back(*layer);
      }
    }
    for (std::int64_t layer = 0; layer < model_.layers; ++layer) {
      const bool is_named = std::find(named.begin(), named.end(), layer) != named.end();
      const bool in_period = (layer + keys.phase) % period == 0;
      if (layer < leading || is_named || !in_period) moe.dense_layers.push_back(layer);
    }
    if (std::ssize(moe.dense_layers) == model_.layers && model_.layers > 0) {
      error_at(family_.layers, fmt::format("none of the {} layers has experts", model_.layers));
    }
  }

  void read_head_dim() {
    const std::int64_t stated = optional("head_dim", head_range, 0);
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

  // Checks what no key alone can exceed.
  void check_widths() {
    const auto check = [&](std::string_view key, std::string_view what, std::int64_t width) {
      if (static_cast<double>(width) <= width_range.most) return;
      error_at(key, fmt::format("{} of {}, at most {:g} can be simulated", what, width, width_range.most));
    };
    check(family_.heads, "heads with a width", model_.heads * model_.head_dim);
    check(family_.hidden, "an MLP with an inner width", model_.ffn_hidden);
    if (model_.moe) {
      check("num_experts_per_tok", "experts of a token with an inner width",
            model_.moe->experts_per_token * model_.moe->expert_hidden);
      check("num_experts_per_tok", "shared experts with an inner width", model_.moe->shared_hidden);
    }
    if (!map_.diagnostics().empty() || model_.layers == 0) return;
    const auto layers = static_cast<double>(model_.layers);
    const double parameters = layers * static_cast<double>(layer_parameter_count(model_)) +
                              static_cast<double>(embedding_parameter_count(model_));
    if (parameters <= most_parameters) return;
    error_at(family_.layers,
             fmt::format("a model of {:.3g} parameters, at most {:g} can be simulated", parameters, most_parameters));
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

}  // namespace hdpsim
