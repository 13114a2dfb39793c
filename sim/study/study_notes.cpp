#include "sim/study/study_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "sim/model/layers.h"
#include "sim/model/sharing_form.h"
#include "sim/profile/renamed_profiles.h"
#include "sim/study/mesh_keys.h"
#include "sim/study/not_modelled.h"
#include "sim/study/sharing_choice.h"
#include "sim/study/study.h"

namespace hdpsim {
namespace {

/// A key of `mesh` that matters at some points alone.
struct IdleRule {
  std::string key;
  std::function<bool(const PointSpec& point)> matters;
  std::string needs;
};

bool has_stages(const PointSpec& point) {
  return point.mesh.pp > 1;
}

bool has_tensor_parallelism(const PointSpec& point) {
  return point.mesh.tp > 1;
}

bool reads(KeyExchange exchange, std::string_view key) {
  const std::vector<std::string_view> keys = sharing_form(exchange).keys();
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// A key that some ways to share a sequence read.
IdleRule sharing_rule(const std::string& key) {
  std::string ways;
  for (const auto& [word, exchange] : key_exchange_words()) {
    if (reads(exchange, key)) ways += (ways.empty() ? "" : " or ") + word;
  }
  const auto matters = [key](const PointSpec& point) {
    return point.mesh.hdp > 1 && reads(point.recipe.key_exchange, key);
  };
  return {key, matters, "several ranks and cp_comm_type: " + ways};
}

bool reduces_beside_backward(const PointSpec& point) {
  return point.recipe.overlap_grad_reduce || point.recipe.overlap_param_gather;
}

bool mixes_linearly(const PointSpec& point) {
  const std::vector<Transformer> kinds = of_each_kind(point.model);
  return std::any_of(kinds.begin(), kinds.end(), [](const Transformer& kind) { return kind.linear.has_value(); });
}

const std::vector<IdleRule>& idle_rules() {
  static const std::vector<IdleRule> rules = {
      sharing_rule("a2a_ranks"),
      sharing_rule("ring_nics"),
      {"schedule", has_stages, "a pp above 1"},
      {"virtual_stages", has_stages, "a pp above 1"},
      {"overlap_p2p_comm", has_stages, "a pp above 1"},
      {"tp_comm_overlap", has_tensor_parallelism, "a tp above 1"},
      {"tp_gradient_overlap", has_tensor_parallelism, "a tp above 1"},
      {"bucket_parameters", reduces_beside_backward, "overlap_grad_reduce: true, or overlap_param_gather: true"},
      {"mixing_exchange", mixes_linearly, "a model with linear mixing"},
  };
  return rules;
}

// A map of keys, or a list of points of which each sets some.
bool sweeps(const Value& sweep, const std::string& key) {
  if (sweep.find(key) != nullptr) return true;
  return std::any_of(sweep.items.begin(), sweep.items.end(), [&](const Value& point) {
    const Value* set = point.find("set");
    return set != nullptr && set->find(key) != nullptr;
  });
}

// Whether the mesh states another value than the default, or the sweep gives it values.
bool is_stated(const Study& study, const IdleRule& rule) {
  const Value* sweep = study.resolved.find("sweep");
  if (sweep != nullptr && sweeps(*sweep, fmt::format("mesh.{}", rule.key))) return true;
  const Value* mesh = study.resolved.find("mesh");
  const Value* stated = mesh == nullptr ? nullptr : mesh->find(rule.key);
  if (stated == nullptr) return false;
  if (!stated->is_scalar()) return true;
  const std::vector<KeyText>& keys = mesh_keys().texts();
  return std::none_of(keys.begin(), keys.end(),
                      [&](const KeyText& key) { return key.name == rule.key && key.fallback == stated->text; });
}

// Every text that the study or its sweep gives `key`.
void collect_texts(const Value& value, std::string_view key, std::set<std::string>& texts) {
  for (const Value& item : value.items) collect_texts(item, key, texts);
  for (const auto& [name, position, stated] : value.entries) {
    if (name != key) {
      collect_texts(stated, key, texts);
      continue;
    }
    if (stated.is_scalar()) texts.insert(stated.text);
    for (const Value& item : stated.items) texts.insert(item.text);
  }
}

// Profiles that are named as they were called.
std::vector<std::string> renamed_notes(const Study& study) {
  std::set<std::string> profiles;
  collect_texts(study.resolved, "profile", profiles);
  std::vector<std::string> lines;
  for (const std::string& name : profiles) {
    const std::string note = renamed_profile_note(name);
    if (!note.empty()) lines.push_back(fmt::format("note: {}: {}", study.name, note));
  }
  return lines;
}

}  // namespace

std::vector<std::string> idle_key_notes(const Study& study) {
  std::vector<std::string> lines;
  for (const IdleRule& rule : idle_rules()) {
    const bool matters = std::any_of(study.points.begin(), study.points.end(),
                                     [&](const StudyPoint& point) { return rule.matters(point.spec); });
    if (matters || !is_stated(study, rule)) continue;
    lines.push_back(fmt::format("note: {}: mesh.{} has no effect: it needs {}", study.name, rule.key, rule.needs));
  }
  return lines;
}

std::vector<std::string> study_notes(const Study& study) {
  std::vector<std::string> lines = model_notes(study);
  for (const auto& notes :
       {renamed_notes(study), network_notes(study), cold_step_warnings(study), idle_key_notes(study)}) {
    std::copy(notes.begin(), notes.end(), std::back_inserter(lines));
  }
  return lines;
}

}  // namespace hdpsim
