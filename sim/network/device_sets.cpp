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

// Adds the groups of `size` consecutive devices.
void add_groups(const std::vector<DeviceId>& devices, std::int64_t size, DeviceSets& groups) {
  const auto each = static_cast<std::ptrdiff_t>(size);
  for (auto first = devices.begin(); first != devices.end(); first += each) groups.emplace_back(first, first + each);
}

// Adds the devices of each place in these groups.
void add_places(const std::vector<DeviceId>& devices, std::int64_t size, DeviceSets& places) {
  const auto each = static_cast<std::size_t>(size);
  for (std::size_t place = 0; place < each; ++place) {
    std::vector<DeviceId>& same = places.emplace_back();
    for (std::size_t i = place; i < devices.size(); i += each) same.push_back(devices[i]);
  }
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

DeviceSets shard_groups(const Mesh& mesh, const Placement& placement) {
  DeviceSets groups;
  for (const auto& pool : pools(mesh, placement)) add_groups(pool, mesh.ranks_of_a_shard_group(), groups);
  return groups;
}

DeviceSets shard_replicas(const Mesh& mesh, const Placement& placement) {
  DeviceSets all;
  for (const auto& pool : pools(mesh, placement)) add_places(pool, mesh.ranks_of_a_shard_group(), all);
  return all;
}

DeviceSets expert_groups(const Mesh& mesh, const Placement& placement) {
  DeviceSets groups;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    add_groups(devices_of_stage(mesh, placement, stage), mesh.ep, groups);
  }
  return groups;
}

DeviceSets expert_pools(const Mesh& mesh, const Placement& placement) {
  DeviceSets all;
  for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
    add_places(devices_of_stage(mesh, placement, stage), mesh.ep, all);
  }
  return all;
}

}  // namespace hdpsim
