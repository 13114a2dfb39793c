#include "sim/cluster/device_facts.h"

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
      if (capability && rate) facts.nvlink[tenths(*capability)] = *rate;
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

}  // namespace hdpsim
