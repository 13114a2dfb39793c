#include "sim/network/device_sets.h"

namespace hdpsim {
namespace {

// The devices of a stage, rank by rank.
std::vector<DeviceId> devices_of_stage(const Mesh& mesh, const Placement& placement, std::int64_t stage) {
  std::vector<DeviceId> devices;
  devices.reserve(static_cast<std::size_t>(mesh.hdp * mesh.tp));
  for (std::int64_t rank = 0; rank < mesh.hdp; ++rank) {
    for (std::int64_t shard = 0; shard < mesh.tp; ++shard) {
      devices.push_back(placement.device(HdpRank(static_cast<std::size_t>(rank)), stage, shard));
    }
  }
  return devices;
}

}  // namespace

DeviceSets pools(const Mesh& mesh, const Placement& placement) {
  DeviceSets all;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    for (std::int64_t shard = 0; shard < mesh.tp; ++shard) {
      std::vector<DeviceId>& devices = all.emplace_back();
      for (std::int64_t rank = 0; rank < mesh.hdp; ++rank) {
        devices.push_back(placement.device(HdpRank(static_cast<std::size_t>(rank)), stage, shard));
      }
    }
  }
  return all;
}

DeviceSets expert_groups(const Mesh& mesh, const Placement& placement) {
  const auto ep = static_cast<std::ptrdiff_t>(mesh.ep);
  DeviceSets groups;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    const std::vector<DeviceId> devices = devices_of_stage(mesh, placement, stage);
    for (auto first = devices.begin(); first != devices.end(); first += ep) groups.emplace_back(first, first + ep);
  }
  return groups;
}

DeviceSets expert_pools(const Mesh& mesh, const Placement& placement) {
  const auto ep = static_cast<std::size_t>(mesh.ep);
  DeviceSets all;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    const std::vector<DeviceId> devices = devices_of_stage(mesh, placement, stage);
    for (std::size_t place = 0; place < ep; ++place) {
      std::vector<DeviceId>& same = all.emplace_back();
      for (std::size_t i = place; i < devices.size(); i += ep) same.push_back(devices[i]);
    }
  }
  return all;
}

}  // namespace hdpsim
