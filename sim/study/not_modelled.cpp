#include "sim/study/not_modelled.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "sim/cost/kernel_slowdown.h"
#include "sim/model/layers.h"
#include "sim/model/mixing.h"
#include "sim/model/shares.h"
#include "sim/network/collective_model.h"
#include "sim/study/study.h"

namespace hdpsim {
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

}  // namespace hdpsim
