#include "sim/model/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "sim/document/reader.h"
#include "sim/model/impl/architecture.h"
#include "sim/model/impl/config_reader.h"
#include "sim/model/impl/near_architecture.h"
#include "sim/model/impl/unread_keys.h"

namespace hdpsim {
namespace {

// What makes a configuration unknown, and how it can be read nevertheless.
void tell_unknown(const Value& config, const Value& name, const std::vector<std::string>& known,
                  Diagnostics& diagnostics) {
  const Resemblance nearest = nearest_family(config);
  const Value* type = config.find("model_type");
  std::string message = fmt::format("there is no known architecture '{}'", name.text);
  if (type != nullptr && type->is_scalar()) message += fmt::format(" (model_type '{}')", type->text);
  std::string help = suggestion(name.text, known);
  if (nearest.read > 0) {
    if (closest(name.text, known).empty()) help.clear();  // which of all that are known, is told here
    message += fmt::format("; it is most like {}", nearest.family->name);
    message += nearest.unread.empty() ? ", which reads all its keys that describe a shape"
                                      : fmt::format(", which does not read {}", first_of(nearest.unread));
  }
  diagnostics.error(name.position, std::move(message),
                    fmt::format("{}{}to read it as another says its keys, write model: {{..., architecture: {}}}", help,
                                help.empty() ? "" : " ", nearest.family->name));
  refuse_unread(*nearest.family, config, diagnostics);
  if (const Value* language = config.find("text_config")) refuse_unread(*nearest.family, *language, diagnostics);
}

// Letters and digits, in small letters; `_text` at the end of a type says nothing.
std::string type_text(std::string_view type) {
  constexpr std::string_view text = "_text";
  if (type.ends_with(text)) type.remove_suffix(text.size());
  std::string plain;
  for (const char c : type) {
    if (c != '_' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

std::string_view class_stem(std::string_view name) {
  for (const std::string_view ending : {"ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "Model"}) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

const Architecture* named(const Value& name, const Value& config, Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (const Architecture& architecture : architectures()) {
    known.emplace_back(architecture.name);
    if (name.text == architecture.name) return &architecture;
  }
  tell_unknown(config, name, known, diagnostics);
  return nullptr;
}

// A type is the name of the family's class in small letters and without what every class of language models ends in:
// qwen3_moe is Qwen3MoeForCausalLM's. Of families of one type it is the one that looks for the language model where the
// file has it.
const Architecture* of_type(std::string_view type, const Value& config) {
  const std::string wanted = type_text(type);
  for (const Architecture& architecture : architectures()) {
    const Value* language = language_model(architecture, config);
    const bool is_there = language != nullptr && (language != &config || config.find("text_config") == nullptr);
    if (is_there && type_text(class_stem(architecture.name)) == wanted) return &architecture;
  }
  return nullptr;
}

const Architecture* find_architecture(MapReader& map) {
  const Value& config = map.value();
  const Value* type = config.find("model_type");
  if (config.find("architectures") == nullptr && type != nullptr && type->is_scalar()) {
    if (const Architecture* found = of_type(type->text, config)) return found;
    map.diagnostics().error(type->position,
                            fmt::format("there is no known architecture of model_type '{}', and the file has no "
                                        "'architectures'",
                                        type->text),
                            fmt::format("to read it as another says its keys, write model: {{..., architecture: {}}}",
                                        nearest_family(config).family->name));
    return nullptr;
  }
  const Value* names = map.require("architectures");
  if (names == nullptr) return nullptr;
  if (!names->is_sequence() || names->items.size() != 1) {
    map.diagnostics().error(names->position, "'architectures' must be a list of one name");
    return nullptr;
  }
  return named(names->items.front(), config, map.diagnostics());
}

// What the file describes beside its language model.
void tell_tower(const Value& config, Transformer& model) {
  for (const char* key : {"vision_config", "audio_config"}) {
    if (config.find(key) != nullptr) model.left_out.push_back(fmt::format("its encoder of '{}'", key));
  }
}

// A language model with what its file says of it outside its map, as those of several modalities do.
Value with_shared_keys(Value language, const Value& config) {
  constexpr std::string_view tied = "tie_word_embeddings";
  const Value* outside = config.find(tied);
  if (outside != nullptr && language.is_map() && language.find(tied) == nullptr) language.set(tied, *outside);
  return language;
}

std::optional<Transformer> read_as(const Architecture& architecture, const Value& config, MapReader& map) {
  const Value* inside = architecture.inside.empty() ? nullptr : map.require(architecture.inside);
  if (inside == nullptr && !architecture.inside.empty()) return std::nullopt;
  const Value language = inside == nullptr ? config : with_shared_keys(*inside, config);
  refuse_unread(architecture, language, map.diagnostics());
  MapReader of_language(language, inside == nullptr ? "the model" : fmt::format("'{}'", architecture.inside),
                        map.diagnostics());
  Transformer model = read_configuration(of_language, architecture);
  tell_tower(config, model);
  tell_unread(architecture, config, model);
  return model;
}

std::string preset_path(const std::string& directory, const std::string& name) {
  return (std::filesystem::path(directory) / (name + ".json")).string();
}

// The map that holds a key: the configuration, or that of its language model.
Value* holder_of(Value& config, std::string_view key) {
  if (config.find(key) != nullptr) return &config;
  for (Value::Entry& entry : config.entries) {
    if (entry.key == "text_config" && entry.value.find(key) != nullptr) return &entry.value;
  }
  return nullptr;
}

void change(Value& config, const std::vector<Value::Entry>& changes, const std::string& name,
            Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (const auto& entry : config.entries) known.push_back(entry.key);
  for (const auto& [key, position, value] : changes) {
    if (key == "architecture") {
      Value named = Value::sequence(position);
      named.items.push_back(value);
      config.set("architectures", std::move(named));
    } else if (Value* holder = holder_of(config, key)) {
      holder->set(key, value);
    } else {
      diagnostics.error(position, fmt::format("the configuration of {} has no key '{}'", name, key),
                        suggestion(key, known));
    }
  }
}

std::optional<Transformer> load_changed(const std::string& path, const std::string& name,
                                        const std::vector<Value::Entry>& changes, Diagnostics& diagnostics) {
  Diagnostics problems;
  Value config = load_document(path, problems);
  if (problems.empty()) change(config, changes, name, problems);
  const bool readable = problems.empty();
  diagnostics.append(problems);
  return readable ? read_model(config, name, diagnostics) : std::nullopt;
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
  if (const Architecture* architecture = find_architecture(map)) model = read_as(*architecture, config, map);
  diagnostics.append(problems);
  if (!model || !problems.empty()) return std::nullopt;
  model->name = name;
  return model;
}

std::optional<Transformer> load_model(const std::string& path, Diagnostics& diagnostics,
                                      const std::vector<Value::Entry>& changes) {
  return load_changed(path, name_of(path), changes, diagnostics);
}

std::optional<Transformer> load_model_preset(const std::string& name, const std::string& directory,
                                             const Position& asked_at, Diagnostics& diagnostics,
                                             const std::vector<Value::Entry>& changes) {
  const std::vector<std::string> names = model_preset_names(directory);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    diagnostics.error(asked_at, fmt::format("there is no model preset '{}'", name), suggestion(name, names));
    return std::nullopt;
  }
  return load_changed(preset_path(directory, name), name, changes, diagnostics);
}

std::vector<KnownArchitecture> known_architectures() {
  std::vector<KnownArchitecture> all;
  for (const Architecture& architecture : architectures()) all.push_back({architecture.name, architecture.note});
  return all;
}

std::vector<std::string> model_preset_names(const std::string& directory) {
  return names_in(directory, ".json");
}

}  // namespace hdpsim
