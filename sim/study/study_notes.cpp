#include "sim/study/study_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/cost/kernel_slowdown.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/model/shares.h"
#include "sim/model/sharing_form.h"
#include "sim/network/collective_model.h"
#include "sim/profile/renamed_profiles.h"
#include "sim/study/sharing_choice.h"
#include "sim/study/study.h"
#include "sim/study/study_keys.h"

namespace hdpsim {
namespace {

// Planning and simulating a step of 2 to 16 million sequences takes 5 to 6 us of processor time a sequence
// (sim/README.md, cost of a simulation).
constexpr double seconds_a_sequence = 6e-6;
constexpr double sequences_worth_a_note = 1e6;

/// A key that matters at some points alone, by its path.
struct IdleRule {
  std::string path;
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
  return {"mesh." + key, matters, "several ranks and cp_comm_type: " + ways};
}

bool reduces_beside_backward(const PointSpec& point) {
  return point.recipe.overlap_grad_reduce || point.recipe.overlap_param_gather;
}

bool has_copies(const PointSpec& point) {
  return point.recipe.parameters != NumberType::fp32;
}

bool mixes_linearly(const PointSpec& point) {
  const std::vector<Transformer> kinds = of_each_kind(point.model);
  return std::any_of(kinds.begin(), kinds.end(), [](const Transformer& kind) { return kind.linear.has_value(); });
}

const std::vector<IdleRule>& idle_rules() {
  static const std::vector<IdleRule> rules = {
      sharing_rule("a2a_ranks"),
      sharing_rule("ring_nics"),
      {"mesh.schedule", has_stages, "a pp above 1"},
      {"mesh.virtual_stages", has_stages, "a pp above 1"},
      {"training.overlap_p2p_comm", has_stages, "a pp above 1"},
      {"training.tp_comm_overlap", has_tensor_parallelism, "a tp above 1"},
      {"training.tp_gradient_overlap", has_tensor_parallelism, "a tp above 1"},
      {"training.bucket_parameters", reduces_beside_backward,
       "overlap_grad_reduce: true, or overlap_param_gather: true"},
      {"training.master", has_copies, "parameters in fewer bits than fp32"},
      {"mesh.mixing_exchange", mixes_linearly, "a model with linear mixing"},
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

// Whether the study states another value than the default, or the sweep gives it values.
bool is_stated(const Study& study, const IdleRule& rule) {
  const Value* sweep = study.resolved.find("sweep");
  if (sweep != nullptr && sweeps(*sweep, rule.path)) return true;
  const std::size_t dot = rule.path.find('.');
  const Value* section = study.resolved.find(rule.path.substr(0, dot));
  const Value* stated = section == nullptr ? nullptr : section->find(rule.path.substr(dot + 1));
  if (stated == nullptr) return false;
  if (!stated->is_scalar()) return true;
  const std::vector<StudyKey> keys = all_study_keys();
  return std::none_of(keys.begin(), keys.end(), [&](const StudyKey& each) {
    return each.path == rule.path && each.key->fallback == stated->text;
  });
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

// Keys that are stated where older studies did, in one line.
std::vector<std::string> moved_notes(const Study& study) {
  std::set<std::string> each;
  for (const MovedKey& key : study.moved) each.insert(fmt::format("{} is {}", key.from, key.to));
  if (each.empty()) return {};
  return {fmt::format("note: {}: keys have moved: {}", study.name, joined(each, ", "))};
}

}  // namespace

std::vector<std::string> idle_key_notes(const Study& study) {
  std::vector<std::string> lines;
  for (const IdleRule& rule : idle_rules()) {
    const bool matters = std::any_of(study.points.begin(), study.points.end(),
                                     [&](const StudyPoint& point) { return rule.matters(point.spec); });
    if (matters || !is_stated(study, rule)) continue;
    lines.push_back(fmt::format("note: {}: {} has no effect: it needs {}", study.name, rule.path, rule.needs));
  }
  return lines;
}

std::vector<std::string> study_notes(const Study& study) {
  std::vector<std::string> lines = model_notes(study);
  for (const auto& notes : {moved_notes(study), renamed_notes(study), network_notes(study), cold_step_warnings(study),
                            idle_key_notes(study)}) {
    std::copy(notes.begin(), notes.end(), std::back_inserter(lines));
  }
  return lines;
}

namespace {

// The costs of a cold step that the profile does not know.
std::vector<std::string> unknown_set_up(const DeviceProfile& profile, const JobLayout& layout) {
  if (!layout.connections.cold || layout.mesh.hdp == 1) return {};
  const ConnectionCosts known = profile.connections.value_or(ConnectionCosts{});
  std::vector<std::string> unknown;
  if (!known.first_contact) unknown.emplace_back("first_contact");
  if (!known.communicator && layout.connections.communicators == Communicators::per_group) {
    unknown.emplace_back("communicator");
  }
  return unknown;
}

}  // namespace

std::vector<std::string> not_modelled(const DeviceProfile& profile, const JobLayout& layout, const Recipe& recipe) {
  std::vector<std::string> unknown = unknown_set_up(profile, layout);
  const auto& connections = profile.connections;
  const bool has_peers = layout.mesh.hdp > 1;
  if (has_peers && (!connections || !connections->memory_per_peer)) unknown.emplace_back("memory_per_peer");
  const bool overlaps = has_peers || recipe.overlap_tp || recipe.overlap_tp_gradients;
  if (overlaps && !kernel_slowdown(profile)) unknown.emplace_back("compute_beside_communication");
  return unknown;
}

std::vector<std::string> cold_step_warnings(const Study& study) {
  std::set<std::pair<std::string, std::string>> unknown;  // by profile
  for (const StudyPoint& point : study.points) {
    const DeviceProfile& profile = *point.spec.profile;
    for (const std::string& key : unknown_set_up(profile, layout_of(point.spec))) unknown.insert({profile.name, key});
  }
  std::vector<std::string> lines;
  lines.reserve(unknown.size());
  for (const auto& [profile, key] : unknown) {
    lines.push_back(fmt::format(
        "warning: {} has cold steps, but the profile {} does not say 'connections.{}': it costs nothing here",
        study.name, profile, key));
  }
  return lines;
}

std::vector<std::string> simplifications_of(const Transformer& model) {
  std::vector<std::string> notes = model.left_out;
  const std::vector<Transformer> kinds = of_each_kind(model);
  const auto say_if = [&](auto&& is_so, const char* note) {
    if (std::any_of(kinds.begin(), kinds.end(), is_so)) notes.emplace_back(note);
  };
  say_if([](const Transformer& kind) { return kind.linear.has_value(); },
         "that no kernel of linear attention was measured: its products are priced as others of their shape");
  say_if([](const Transformer& kind) { return kind.indexer.has_value(); },
         "that no kernel of sparse attention was measured: scores of keys and attention to those that an indexer "
         "chooses are priced as dense attention with heads of their widths, without the all-reduce of what the indexer "
         "learns from, and with gradients of its inputs, of which it has none");
  say_if([](const Transformer& kind) { return value_dim(kind) != kind.head_dim; },
         "that keys and values have unlike widths: attention is priced with heads of their mean width");
  say_if(
      [](const Transformer& kind) { return attention_reach(kind) > 0; },
      "that windows and chunks end within tiles of a kernel, and reach past a ring's neighbours where parts are short");
  return notes;
}

std::vector<std::string> model_notes(const Study& study) {
  std::set<std::pair<std::string, std::string>> notes;  // by model
  for (const StudyPoint& point : study.points) {
    for (const std::string& note : simplifications_of(point.spec.model)) notes.insert({point.spec.model.name, note});
  }
  std::vector<std::string> lines;
  lines.reserve(notes.size());
  for (const auto& [model, note] : notes) lines.push_back(fmt::format("note: {}: left out is {}", model, note));
  return lines;
}

std::vector<std::string> network_notes(const Study& study) {
  std::set<std::string> notes;
  for (const StudyPoint& point : study.points) {
    const ClusterSpec& cluster = point.spec.cluster;
    const std::string left_out = why_no_in_network_reduction(cluster);
    if (!left_out.empty()) notes.insert(fmt::format("note: {}: {}", cluster.name, left_out));
  }
  return {notes.begin(), notes.end()};
}

std::string large_step_note(const Study& study) {
  double most = 0;
  for (const StudyPoint& point : study.points) most = std::max(most, point.batches->sequences_per_step());
  if (most <= sequences_worth_a_note) return {};
  return fmt::format(
      "note: {}: a step of about {} sequences takes about {:.0f} s of processor time, or more, for each plan",
      study.name, short_number(most), std::ceil(most * seconds_a_sequence));
}

}  // namespace hdpsim
