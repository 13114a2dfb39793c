#include "sim/model/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "sim/document/reader.h"
#include "sim/model/impl/architecture.h"
#include "sim/model/impl/config_reader.h"
#include "sim/model/impl/family_names.h"
#include "sim/model/impl/near_architecture.h"
#include "sim/model/impl/unread_keys.h"
#include "sim/model/parameters.h"

namespace hdpsim {
namespace {

// What the file describes beside its language model.
void tell_tower(const Value& config, Transformer& model) {
  for (const char* key : {"vision_config", "audio_config"}) {
    if (config.find(key) != nullptr) model.left_out.push_back(fmt::format("its encoder of '{}'", key));
  }
  if (const Value* thinker = config.find("thinker_config")) tell_tower(*thinker, model);
}

// A language model with what its file says of it outside its map, as those of several modalities do.
Value with_shared_keys(Value language, const Value& config) {
  constexpr std::string_view tied = "tie_word_embeddings";
  const Value* outside = config.find(tied);
  if (outside != nullptr && language.is_map() && language.find(tied) == nullptr) language.set(tied, *outside);
  return language;
}

// A language model with the keys of its inner maps, by their path, and by their names as far as it has no keys of these
// names itself.
Value with_keys_of_maps(Value language, const Architecture& architecture) {
  for (const std::string_view name : architecture.maps) {
    const Value* map = name.empty() ? nullptr : language.find(name);
    if (map == nullptr || !map->is_map()) continue;
    const Value inner = *map;
    for (const Value::Entry& entry : inner.entries) language.set(fmt::format("{}.{}", name, entry.key), entry.value);
    fill_in(language, inner);
  }
  return language;
}

std::optional<Transformer> read_as(const Architecture& architecture, const Value& config, MapReader& map) {
  const bool may_be_missing = architecture.inside.empty() || architecture.may_be_outside;
  const Value* inside = architecture.inside.empty() ? nullptr : map.find(architecture.inside);
  if (inside == nullptr && !may_be_missing) inside = map.require(architecture.inside);
  if (inside == nullptr && !may_be_missing) return std::nullopt;
  const Value language =
      with_keys_of_maps(inside == nullptr ? config : with_shared_keys(*inside, config), architecture);
  refuse_unread(architecture, language, map.diagnostics());
  MapReader of_language(language, inside == nullptr ? "the model" : fmt::format("'{}'", architecture.inside),
                        map.diagnostics());
  Transformer model = read_configuration(of_language, architecture);
  tell_tower(config, model);
  tell_unread(architecture, config, model);
  return model;
}

// A family that can read a configuration, and what it makes of it.
struct Reading {
  Resemblance of;
  std::int64_t parameters = 0;  ///< 0: it cannot read it.
};

// Whether the activation leaves open that the MLP has a gate, or none, as the family's has.
bool may_have_mlp_of(const Architecture& family, const Value& config) {
  const Value* activation = config.find("hidden_act");
  if (activation == nullptr) return true;
  if (activation->text == "silu" || activation->text == "swiglu") return family.gated_mlp;
  return !family.gated_mlp || (activation->text != "relu2" && activation->text != "xielu");
}

// Of the families that can read a configuration, those that read most of its shape; of all of them the first if none
// can.
std::vector<Reading> nearest_families(const Value& config) {
  std::vector<Reading> nearest;
  std::vector<Resemblance> all = by_resemblance(config);
  for (Resemblance& one : all) {
    if (one.read == 0 || !may_have_mlp_of(*one.family, config) || !takes_widths_as_stated(*one.family, config))
      continue;
    const bool is_as_near = nearest.empty() || (one.read == nearest.front().of.read && one.unread.empty());
    if (!is_as_near) break;
    Diagnostics problems;
    MapReader map(config, "the model", problems);
    const std::optional<Transformer> model = read_as(*one.family, config, map);
    if (model && problems.empty()) nearest.push_back({std::move(one), parameter_count(*model)});
  }
  if (nearest.empty()) nearest.push_back({std::move(all.front()), 0});
  return nearest;
}

// The readings with most and fewest parameters, where these differ so much that none can be proposed.
std::optional<std::pair<Reading, Reading>> far_apart(const std::vector<Reading>& readings) {
  constexpr double most_apart = 1.03;
  const auto [least, most] = std::minmax_element(
      readings.begin(), readings.end(), [](const auto& a, const auto& b) { return a.parameters < b.parameters; });
  if (static_cast<double>(most->parameters) <= most_apart * static_cast<double>(least->parameters)) return std::nullopt;
  return std::pair(*least, *most);
}

std::string how_to_read_as(const Architecture& family) {
  return fmt::format("to read it as another says its keys, write model: {{..., architecture: {}}}", family.name);
}

// The keys that no family reads; all of them if each has one that does.
std::vector<std::string> read_by_none(const std::vector<std::string>& keys) {
  std::vector<std::string> unread;
  std::copy_if(keys.begin(), keys.end(), std::back_inserter(unread), [](const auto& key) { return !is_read(key); });
  return unread.empty() ? keys : unread;
}

// What makes a configuration unknown. How it can be read nevertheless is told only where a family reads all that it
// says of its shape: any other would give another model.
void tell_unknown(const Value& config, const Value& place, std::string message, Diagnostics& diagnostics) {
  const std::vector<Reading> readings = nearest_families(config);
  const Resemblance& nearest = readings.front().of;
  if (!nearest.unread.empty()) {
    diagnostics.error(place.position,
                      fmt::format("{}; no family that is known reads all of its shape: not {}", message,
                                  first_of(read_by_none(nearest.unread))),
                      "`hdpsim list models` shows the models that are known");
    tell_deciding(config, diagnostics);
    if (const Value* language = config.find("text_config")) tell_deciding(*language, diagnostics);
    return;
  }
  if (const auto apart = far_apart(readings)) {
    const auto& [least, most] = *apart;
    message += fmt::format("; as {} it has {:.3g} parameters, as {} {:.3g}: the file does not tell which of the two",
                           least.of.family->name, static_cast<double>(least.parameters), most.of.family->name,
                           static_cast<double>(most.parameters));
    diagnostics.error(place.position, std::move(message),
                      "write model: {..., architecture: NAME} with the family of its number of parameters");
    return;
  }
  if (nearest.read > 0) {
    message += fmt::format("; it is most like {} (gates of MLPs, biases, norms and tied tables would be as there)",
                           nearest.family->name);
  }
  diagnostics.error(place.position, std::move(message), how_to_read_as(*nearest.family));
}

void tell_unknown_name(const Value& config, const Value& name, Diagnostics& diagnostics) {
  const Value* type = config.find("model_type");
  const bool has_type = type != nullptr && type->is_scalar();
  std::string message = fmt::format("there is no known architecture '{}'", name.text);
  if (const Architecture* family = has_type ? family_of_type(type->text, config) : nullptr) {
    diagnostics.error(name.position, fmt::format("{}; its model_type '{}' is of {}", message, type->text, family->name),
                      how_to_read_as(*family));
    return;
  }
  if (has_type) message += fmt::format(" (model_type '{}')", type->text);
  if (by_resemblance(config).front().read > 0) return tell_unknown(config, name, std::move(message), diagnostics);
  std::vector<std::string> known;
  for (const Architecture& architecture : architectures()) known.emplace_back(architecture.name);
  diagnostics.error(name.position, std::move(message), suggestion(name.text, known));
}

std::optional<Transformer> read_inner(const InnerModel& inner, const Value& config, std::string_view outer,
                                      Diagnostics& diagnostics) {
  const Value language = with_shared_keys(*inner.config, config);
  MapReader map(language, fmt::format("'{}'", inner.key), diagnostics);
  std::optional<Transformer> model = read_as(*inner.family, language, map);
  if (!model) return model;
  tell_tower(config, *model);
  model->left_out.push_back(
      fmt::format("what {} has around its language model, a {} ('{}')", outer, inner.family->name, inner.key));
  return model;
}

std::optional<Transformer> read_known(const Value& config, Diagnostics& diagnostics) {
  MapReader map(config, "the model", diagnostics);
  const Value* name = stated_name(config, diagnostics);
  if (!diagnostics.empty()) return std::nullopt;
  if (const Architecture* family = known_family(config, name)) return read_as(*family, config, map);
  const Value* type = config.find("model_type");
  const bool has_type = type != nullptr && type->is_scalar();
  if (const auto inner = inner_model(config)) {
    return read_inner(*inner, config, name != nullptr ? name->text : has_type ? type->text : "the model", diagnostics);
  }
  if (name != nullptr) {
    tell_unknown_name(config, *name, diagnostics);
  } else if (has_type) {
    tell_unknown(config, *type,
                 fmt::format("there is no known architecture of model_type '{}', and the file has no 'architectures'",
                             type->text),
                 diagnostics);
  } else {
    diagnostics.error(config.position, "the model needs 'architectures'",
                      "write \"architectures\": [\"LlamaForCausalLM\"], with the model's own");
  }
  return std::nullopt;
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
  std::optional<Transformer> model = read_known(config, problems);
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
