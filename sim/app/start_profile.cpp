#include "sim/app/start_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "sim/app/named_cluster.h"
#include "sim/app/terminal.h"
#include "sim/cluster/cluster_config.h"
#include "sim/document/json_stream.h"
#include "sim/profile/profile_file.h"
#include "sim/profile/renamed_profiles.h"

namespace hdpsim::app {
namespace {

namespace fs = std::filesystem;

bool is_profile(const std::string& name, const Catalog& catalog) {
  const std::vector<std::string> shipped = shipped_profile_names(catalog);
  if (std::find(shipped.begin(), shipped.end(), name) != shipped.end() || find_renamed_profile(name) != nullptr) {
    return true;
  }
  std::error_code refused;
  if (!fs::is_regular_file(name, refused)) return false;
  Diagnostics ignored;
  const Value outline = load_outline(name, ignored);
  const Value* schema = outline.find("schema");
  return schema != nullptr && schema->text == "hdpsim.profile/1";
}

}  // namespace

std::vector<std::string> shipped_profile_names(const Catalog& catalog) {
  return profile_names(catalog.profiles().string());
}

ProfilePtr start_profile(const std::string& name, Catalog& catalog) {
  Diagnostics diagnostics;
  ProfilePtr profile = catalog.profile(Value::scalar(name, {"--like", 0, 0}), diagnostics);
  diagnostics.throw_if_any();
  if (const std::string renamed = renamed_profile_note(name); !renamed.empty()) note(renamed);
  return profile;
}

std::optional<StartProfile> start_like(const std::string& name, Catalog& catalog) {
  if (name.empty()) return std::nullopt;
  if (is_profile(name, catalog)) return StartProfile{start_profile(name, catalog), std::nullopt};
  const std::vector<std::string> clusters = cluster_preset_names(catalog.clusters());
  const bool is_cluster = std::find(clusters.begin(), clusters.end(), name) != clusters.end();
  std::error_code refused;
  if (!is_cluster && !fs::exists(name, refused)) {
    std::vector<std::string> known = shipped_profile_names(catalog);
    known.insert(known.end(), clusters.begin(), clusters.end());
    throw InputError(fmt::format("--like {}: there is no such cluster or profile", name), suggestion(name, known));
  }
  const ClusterSpec cluster = named_cluster(name, std::nullopt, catalog);
  Diagnostics diagnostics;
  const Position asked{"--like", 0, 0};
  ProfilePtr profile = profile_of_device(cluster.device, asked, catalog, diagnostics);
  if (profile == nullptr) {
    throw InputError(fmt::format("--like {}: no single shipped profile is of a {}", name, cluster.device),
                     "name a profile in place of the cluster");
  }
  return StartProfile{std::move(profile), cluster.devices_per_node};
}

}  // namespace hdpsim::app
