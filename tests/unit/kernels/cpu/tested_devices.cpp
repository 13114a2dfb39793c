#include "kernels/cpu/cpu_backend.h"
#include "tests/support/twin_launch.h"

namespace hdpsim::kernels {

std::vector<TestedDevice> tested_devices() {
  std::vector<TestedDevice> devices;
  for (const InstructionSet set : instruction_sets()) {
    TestedDevice& device = devices.emplace_back(TestedDevice{std::string(name_of(set)), make_cpu_backend(set), {}});
    if (set == best_instruction_set()) device.longest = 4000;  // what keys are packed at once is no matter of the set
    device.has_products = devices.size() == 1;                 // a library's, whatever the set
    // Widths around those of vectors.
    for (const std::int64_t width : {1, 3, 4, 15, 16, 17, 63, 64, 65, 257}) device.shapes.push_back({5, width});
  }
  return devices;
}

}  // namespace hdpsim::kernels
