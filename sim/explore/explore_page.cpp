#include "sim/explore/explore_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity_text.h"
#include "sim/cluster/cluster_config.h"
#include "sim/document/json.h"
#include "sim/document/values.h"
#include "sim/explore/explore_page_files.h"
#include "sim/model/memory.h"
#include "sim/model/model_config.h"
#include "sim/page/page.h"
#include "sim/page/page_files.h"
#include "sim/plan/policy.h"
#include "sim/profile/profile_file.h"
#include "sim/report/page/page_data.h"
#include "sim/study/study_keys.h"
#include "sim/trace/trace_file.h"

namespace hdpsim {
namespace {

/// A slider over powers of two; the field next to it takes any value of the key.
struct Stops {
  std::int64_t first = 1;
  std::int64_t last = 1;
  /// The text after a plain number; if empty, numbers are written as 8Ki.
  std::optional<std::string_view> unit = {};
};

struct MainControl {
  std::string_view path;
  std::string_view label;
  Stops stops = {};
};

struct ControlGroup {
  std::string_view title;
  std::vector<MainControl> controls;
};

constexpr std::int64_t ki = 1024;

// The range of NICs that are sold.
const std::vector<ControlGroup>& main_controls() {
  static const std::vector<ControlGroup> groups = {
      {"Cluster",
       {{"cluster", "Cluster"},
        {"cluster.gpus", "GPUs", {8, 128 * ki, ""}},
        {"cluster.node.nics.bandwidth", "Rate of a NIC", {50, 1600, " Gbit/s"}},
        {"profile", "Costs of the device"}}},
      {"Model and data",
       {{"model", "Model"},
        {"data.lengths", "Sequence lengths"},
        {"data.context", "Context", {4 * ki, 8 * ki * ki}},
        {"data.tokens_per_step", "Tokens in a step", {ki * ki, 256 * ki * ki}},
        {"data.steps", "Steps", {1, ki, ""}}}},
      {"Mesh",
       {{"mesh.tp", "Tensor parallelism, tp", {1, 64, ""}},
        {"mesh.pp", "Pipeline stages, pp", {1, 64, ""}},
        {"mesh.capacity", "Capacity of a rank", {ki, 128 * ki}}}},
      {"Plans", {{"plans", "Plans"}, {"compare_to", "Speed-up over"}}}};
  return groups;
}

Json stops_json(const Stops& stops) {
  Json texts = Json::array();
  for (std::int64_t at = stops.first; at <= stops.last && stops.last > 1; at *= 2) {
    texts.push_back(stops.unit ? fmt::format("{}{}", at, *stops.unit) : count_text(at));
  }
  return texts;
}

Json words_json(const KeyShape& shape) {
  if (shape.kind == KeyShape::Kind::flag) return {"true", "false"};
  return shape.words;
}

Json key_json(const std::string& path, const KeyText& key) {
  return {{"path", path},
          {"values", key.shape.text()},
          {"words", words_json(key.shape)},
          {"default", key.fallback},
          {"meaning", key.sentence}};
}

// What a study's own keys mean; those of a cluster are in a file of their own, which has no declarations.
Json control_json(const MainControl& control, const std::vector<StudyKey>& keys) {
  const auto declared =
      std::find_if(keys.begin(), keys.end(), [&](const StudyKey& key) { return key.path == control.path; });
  Json json = declared == keys.end() ? Json{{"path", control.path}} : key_json(declared->path, *declared->key);
  json["label"] = control.label;
  json["stops"] = stops_json(control.stops);
  return json;
}

Json groups_json(const std::vector<StudyKey>& keys) {
  Json groups = Json::array();
  for (const auto& [title, controls] : main_controls()) {
    Json group = {{"title", title}, {"controls", Json::array()}};
    for (const MainControl& control : controls) group["controls"].push_back(control_json(control, keys));
    groups.push_back(std::move(group));
  }
  return groups;
}

// Keys that hold one value: sections are set key by key, and a session has no sweep.
Json settable_json(const std::vector<StudyKey>& keys) {
  Json settable = Json::array();
  for (const auto& [path, key] : keys) {
    const std::string_view top = std::string_view(path).substr(0, path.find('.'));
    const bool is_map = key->shape.kind == KeyShape::Kind::map;
    if (!is_map && top != "sweep" && top != "plans" && top != "output" && top != "replay" && top != "tune") {
      settable.push_back(key_json(path, *key));
    }
  }
  return settable;
}

Json policies_json() {
  Json policies = Json::array();
  for (const auto& [name, options] : policy_options()) {
    Json keys = Json::array();
    for (const KeyText& option : options) keys.push_back(key_json(option.name, option));
    policies.push_back({{"name", name}, {"options", keys}});
  }
  return policies;
}

// A preset that cannot be read is omitted: the command that names it says why.
Json clusters_json(const Catalog& catalog) {
  Json clusters = Json::array();
  for (const std::string& name : cluster_preset_names(catalog.clusters())) {
    Value value = Value::map();
    value.set("preset", Value::scalar(name));
    Diagnostics found;
    if (const auto cluster = catalog.cluster(value, found)) {
      clusters.push_back({{"name", name}, {"device", cluster->device}});
    }
  }
  return clusters;
}

Json profiles_json(Catalog& catalog) {
  Json profiles = Json::array();
  for (const std::string& name : profile_names(catalog.profiles().string())) {
    Diagnostics found;
    if (const auto profile = catalog.profile(Value::scalar(name), found)) {
      profiles.push_back({{"name", name},
                          {"device", profile->provenance.device},
                          {"is_implied", !profile->provenance.implied_by.empty()},
                          {"label", profile_label_name(profile->provenance.label)}});
    }
  }
  return profiles;
}

Json names_of_memory_parts() {
  Json names = Json::array();
  for (std::size_t i = 0; i < memory_parts; ++i) names.push_back(memory_part_name(static_cast<MemoryPart>(i)));
  return names;
}

Json names_of_plans(const Study& study) {
  Json names = Json::array();
  for (const StudyPlan& plan : study.plans) names.push_back(plan.name);
  return names;
}

}  // namespace

Json controls_json(Catalog& catalog) {
  const std::vector<StudyKey> keys = all_study_keys();
  return {{"groups", groups_json(keys)},
          {"keys", settable_json(keys)},
          {"policies", policies_json()},
          {"clusters", clusters_json(catalog)},
          {"profiles", profiles_json(catalog)},
          {"models", model_preset_names(catalog.models().string())},
          {"lengths", preset_names(catalog.traces())}};
}

std::string explore_page(const Study& study, Catalog& catalog, std::string_view version, std::string_view nonce) {
  const Json json = {{"version", version},
                     {"name", study.name},
                     {"study", json_of(study.resolved)},
                     {"plans", names_of_plans(study)},
                     {"colors", plan_colors(policy_names())},
                     {"definitions", definitions(policy_names())},
                     {"memory_parts", names_of_memory_parts()},
                     {"controls", controls_json(catalog)}};
  const std::string title = escaped_markup(study.name);
  const std::string data = script_safe(json_line(json));
  const std::string style = fmt::format("{}\n{}", page_files::page_css, explore_files::explore_css);
  const std::string script = fmt::format(
      "{}\n{}\n{}\n{}\n{}\n{}\n{}", page_files::charts_js, page_files::parts_js, explore_files::program_js,
      explore_files::settings_js, explore_files::controls_js, explore_files::results_js, explore_files::explore_js);
  return filled(explore_files::explore_html,
                {{"title", title}, {"style", style}, {"nonce", nonce}, {"data", data}, {"script", script}});
}

}  // namespace hdpsim
