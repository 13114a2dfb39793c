#include "sim/study/catalog.h"

#include <fmt/format.h>

#include "sim/cluster/cluster_config.h"
#include "sim/document/reader.h"
#include "sim/model/model_config.h"
#include "sim/profile/profile_file.h"
#include "sim/report/values.h"
#include "sim/study/lengths.h"
#include "sim/study/study_paths.h"

namespace hdpsim {

std::optional<ClusterSpec> Catalog::cluster(const Value& value, Diagnostics& diagnostics) const {
  return read_cluster(value, clusters(), diagnostics);
}

Value Catalog::expanded_cluster(const Value& value) const {
  Diagnostics told_before;
  return expand_cluster(value, clusters(), told_before);
}

std::optional<Transformer> Catalog::model(const Value& value, Diagnostics& diagnostics) const {
  MapReader map(value, "the model", diagnostics);
  const Value* preset = map.find("preset");
  const Value* config = map.find("hf_config");
  std::vector<Value::Entry> changes;
  if (preset != nullptr) {
    for (const auto& entry : value.entries) {
      if (entry.key != "preset" && entry.key != "hf_config" && map.find(entry.key) != nullptr) changes.push_back(entry);
    }
  }
  map.finish();
  if (value.is_map() && (preset == nullptr) == (config == nullptr)) {
    map.error("a model is a 'preset' or an 'hf_config'", "write model: {preset: llama-7b}");
    return std::nullopt;
  }
  const Value* named = preset != nullptr ? preset : config;
  if (named == nullptr || !read<std::string>(*named, diagnostics)) return std::nullopt;
  std::optional<Transformer> model;
  if (preset != nullptr) {
    model = load_model_preset(preset->text, models().string(), preset->position, diagnostics, changes);
  } else if (is_there(path_of(*config))) {
    model = load_model(path_of(*config).string(), diagnostics);
  } else {
    diagnostics.error(config->position, fmt::format("there is no file {}", path_of(*config).string()));
  }
  return model;
}

std::shared_ptr<const DeviceProfile> Catalog::profile(const Value& value, Diagnostics& diagnostics) {
  if (!read<std::string>(value, diagnostics)) return nullptr;
  const bool is_path = looks_like_path(value.text);
  const std::string name = is_path ? path_of(value).string() : value.text;
  if (const auto known = read_profiles_.find(name); known != read_profiles_.end()) return known->second;
  if (is_path && !is_there(name)) {
    diagnostics.error(value.position, fmt::format("there is no file {}", name));
    return nullptr;
  }
  auto profile = load_profile(name, profiles().string(), value.position, diagnostics);
  if (!profile) return nullptr;
  return read_profiles_[name] = std::make_shared<DeviceProfile>(std::move(*profile));
}

std::optional<Lengths> Catalog::lengths(const Value& value, Diagnostics& diagnostics) {
  Value named = value;
  make_paths_absolute(named);
  const std::string key = line_of(named);
  if (const auto known = read_lengths_.find(key); known != read_lengths_.end()) return known->second;
  std::optional<Lengths> lengths = read_lengths(value, traces(), diagnostics);
  if (lengths) read_lengths_[key] = *lengths;
  return lengths;
}

}  // namespace hdpsim
