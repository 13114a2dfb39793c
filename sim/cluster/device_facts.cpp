#include "sim/cluster/device_facts.h"

#include <algorithm>
#include <array>

namespace hdpsim {
namespace {

struct DeviceFacts {
  std::string_view device;
  int compute_capability;
};

constexpr std::array<DeviceFacts, 13> known = {{{"V100", 70},
                                                {"A100", 80},
                                                {"A800", 80},
                                                {"A40", 86},
                                                {"L40S", 89},
                                                {"H100", 90},
                                                {"H800", 90},
                                                {"H200", 90},
                                                {"H20", 90},
                                                {"GH200", 90},
                                                {"B200", 100},
                                                {"GB200", 100},
                                                {"B300", 103}}};

}  // namespace

int compute_capability_of(std::string_view device) {
  const std::string_view word = device.substr(0, device.find('-'));
  const auto* found = std::find_if(known.begin(), known.end(), [&](const DeviceFacts& f) { return f.device == word; });
  return found == known.end() ? unknown_capability : found->compute_capability;
}

}  // namespace hdpsim
