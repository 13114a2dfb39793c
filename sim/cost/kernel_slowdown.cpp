#include "sim/cost/kernel_slowdown.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace hdpsim {
namespace {

constexpr std::string_view under_messages = "p2p";  // traffic under which kernels are measured

const Interference* gentlest(const std::vector<Interference>& pairs, std::string_view kernel) {
  const Interference* found = nullptr;
  for (const Interference& pair : pairs) {
    if (pair.traffic != under_messages || pair.compute != kernel) continue;
    if (found == nullptr || pair.ctas < found->ctas) found = &pair;
  }
  return found;
}

}  // namespace

std::optional<KernelSlowdown> kernel_slowdown(const DeviceProfile& profile) {
  if (const auto& stated = profile.overheads.compute_beside_communication) {
    return KernelSlowdown{stated->factor, stated->factor, stated->factor, Evidence::formula};
  }
  const Interference* attention = gentlest(profile.samples.interference, "attention");
  const Interference* product = gentlest(profile.samples.interference, "gemm");
  const Interference* memory_bound = gentlest(profile.samples.interference, "elementwise");
  if (attention == nullptr && product == nullptr && memory_bound == nullptr) return std::nullopt;
  const auto factor = [](const Interference* pair) { return pair == nullptr ? 1 : std::max(1.0, pair->slowdown); };
  return KernelSlowdown{factor(attention), factor(product), factor(memory_bound), Evidence::interpolated};
}

Duration lost_to_overlap(Duration alone, Duration messages, double factor) {
  const Duration overlap = std::min(messages, alone.scaled(factor));
  return overlap - overlap.scaled(1 / factor);
}

}  // namespace hdpsim
