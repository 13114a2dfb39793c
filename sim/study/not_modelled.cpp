#include "sim/study/not_modelled.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "sim/cost/kernel_slowdown.h"

namespace hdpsim {
namespace {

// The costs of a cold step of this point that the profile does not know.
std::vector<std::string> unknown_set_up(const PointSpec& point) {
  if (!point.connections.cold || point.mesh.hdp == 1) return {};
  const ConnectionCosts known = point.profile->connections.value_or(ConnectionCosts{});
  std::vector<std::string> unknown;
  if (!known.first_contact) unknown.emplace_back("first_contact");
  if (!known.communicator && point.connections.communicators == Communicators::per_group) {
    unknown.emplace_back("communicator");
  }
  return unknown;
}

}  // namespace

std::vector<std::string> not_modelled(const PointSpec& point) {
  std::vector<std::string> unknown = unknown_set_up(point);
  const auto& connections = point.profile->connections;
  const bool has_peers = point.mesh.hdp > 1;
  if (has_peers && (!connections || !connections->memory_per_peer)) unknown.emplace_back("memory_per_peer");
  const bool overlaps = has_peers || point.recipe.overlap_tp || point.recipe.overlap_tp_gradients;
  if (overlaps && !kernel_slowdown(*point.profile)) unknown.emplace_back("compute_beside_communication");
  return unknown;
}

std::vector<std::string> cold_step_warnings(const Study& study) {
  std::set<std::pair<std::string, std::string>> unknown;  // by profile
  for (const StudyPoint& point : study.points) {
    for (const std::string& key : unknown_set_up(point.spec)) unknown.insert({point.spec.profile->name, key});
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

}  // namespace hdpsim
