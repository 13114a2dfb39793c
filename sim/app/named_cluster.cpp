#include "sim/app/named_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "sim/cluster/cluster_config.h"
#include "sim/study/study_paths.h"

namespace hdpsim::app {

ClusterSpec named_cluster(const std::string& name, std::optional<std::int64_t> gpus, const Catalog& catalog) {
  Diagnostics diagnostics;
  const std::vector<std::string> presets = cluster_preset_names(catalog.clusters());
  const bool is_preset = std::find(presets.begin(), presets.end(), name) != presets.end();
  std::error_code refused;  // a name that is too long for a file names none
  if (!is_preset && !looks_like_path(name) && !std::filesystem::exists(name, refused)) {
    throw InputError(fmt::format("there is no shipped cluster '{}', and no file of this name", name),
                     suggestion(name, presets));
  }
  Value value = Value::map();
  value.position.file = "the command line";
  value.set(is_preset ? "preset" : "file", Value::scalar(name));
  if (gpus) value.set("gpus", Value::scalar(fmt::format("{}", *gpus)));
  const auto cluster = catalog.cluster(value, diagnostics);
  diagnostics.throw_if_any();
  return *cluster;
}

}  // namespace hdpsim::app
