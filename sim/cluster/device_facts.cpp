#include "sim/cluster/device_facts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "sim/cluster/shipped_devices.h"
#include "sim/document/reader.h"

namespace hdpsim {
namespace {

struct DeviceFacts {
  std::map<std::string, int, std::less<>> capability;
  std::map<int, Bandwidth> nvlink;
  std::map<int, std::int64_t> nvlinks;
  std::map<int, HostLinks> host_links;
};

int tenths(double capability) {
  return static_cast<int>(std::lround(10 * capability));
}

DeviceFacts read_facts() {
  Diagnostics problems;
  const Value root = parse_document("configs/devices.yaml", std::string(shipped::devices), problems);
  MapReader map(root, "the types of devices", problems);
  DeviceFacts facts;
  if (const Value* capabilities = map.require("compute_capability")) {
    for (const Value::Entry& entry : capabilities->entries) {
      facts.capability[entry.key] = tenths(read<double>(entry.value, problems).value_or(0));
    }
  }
  if (const Value* rates = map.require("nvlink")) {
    for (const Value& item : rates->items) {
      MapReader generation(item, "a generation of NVLink", problems);
      const auto capability = generation.required<double>("capability");
      const auto rate = generation.required<Bandwidth>("rate");
      const auto links = generation.required<std::int64_t>("links");
      if (capability && rate) facts.nvlink[tenths(*capability)] = *rate;
      if (capability && links) facts.nvlinks[tenths(*capability)] = *links;
      generation.finish();
    }
  }
  if (const Value* hosts = map.require("hosts")) {
    for (const Value& item : hosts->items) {
      MapReader generation(item, "a generation of hosts", problems);
      const auto capability = generation.required<double>("capability");
      const auto pcie = generation.required<Bandwidth>("pcie");
      const auto nic = generation.required<Bandwidth>("nic");
      if (capability && pcie && nic) facts.host_links[tenths(*capability)] = {*pcie, *nic};
      generation.finish();
    }
  }
  map.finish();
  problems.throw_if_any();
  return facts;
}

const DeviceFacts& facts() {
  static const DeviceFacts read = read_facts();
  return read;
}

}  // namespace

int compute_capability_of(std::string_view device) {
  const auto found = facts().capability.find(device.substr(0, device.find('-')));
  return found == facts().capability.end() ? unknown_capability : found->second;
}

std::optional<Bandwidth> nvlink_rate_of(int compute_capability) {
  const auto found = facts().nvlink.find(compute_capability);
  return found == facts().nvlink.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t most_nvlinks_of(int compute_capability) {
  const std::map<int, std::int64_t>& known = facts().nvlinks;
  const auto found = known.find(compute_capability);
  if (found != known.end()) return found->second;
  return std::max_element(known.begin(), known.end(), [](auto& a, auto& b) { return a.second < b.second; })->second;
}

std::optional<HostLinks> host_links_of(int compute_capability) {
  const auto found = facts().host_links.find(compute_capability);
  return found == facts().host_links.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace hdpsim
