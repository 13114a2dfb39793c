#include "sim/app/named_cluster.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/cluster/cluster_config.h"

namespace hdpsim::app {

ClusterSpec named_cluster(const std::string& name, std::optional<std::int64_t> gpus, const Catalog& catalog) {
  Diagnostics diagnostics;
  const std::vector<std::string> presets = cluster_preset_names(catalog.clusters());
  const bool is_preset = std::find(presets.begin(), presets.end(), name) != presets.end();
  Value value = Value::map();
  value.position.file = "the command line";
  value.set(is_preset ? "preset" : "file", Value::scalar(name));
  if (gpus) value.set("gpus", Value::scalar(fmt::format("{}", *gpus)));
  const auto cluster = catalog.cluster(value, diagnostics);
  diagnostics.throw_if_any();
  return *cluster;
}

}  // namespace hdpsim::app
