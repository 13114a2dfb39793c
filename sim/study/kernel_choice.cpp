#include "sim/study/kernel_choice.h"

#include <fmt/format.h>

#include <utility>

#include "sim/document/reader.h"

namespace hdpsim {

std::shared_ptr<const DeviceProfile> with_kernels(std::shared_ptr<const DeviceProfile> profile, const Value& kernels,
                                                  Diagnostics& diagnostics) {
  MapReader map(kernels, "the kernels", diagnostics);
  const Value* attention = map.find("attention");
  const Value* linear = map.find("linear");
  map.finish();
  const bool unfused =
      attention != nullptr && read_choice(*attention, "attention", {"flash", "unfused"}, diagnostics) == 1;
  const bool fp8 = linear != nullptr && read_choice(*linear, "linear", {"bf16", "fp8"}, diagnostics) == 1;
  if (profile == nullptr || (!unfused && !fp8)) return profile;
  auto chosen = std::make_shared<DeviceProfile>(*profile);
  chosen->unfused_attention = unfused;
  if (!fp8) return chosen;
  if (!chosen->gemm_fp8) {
    diagnostics.error(linear->position, fmt::format("the profile {} has no 'gemm_fp8'", profile->name),
                      "choose a profile that has it, or write bf16");
  }
  chosen->gemm = std::exchange(chosen->gemm_fp8, std::nullopt);
  return chosen;
}

}  // namespace hdpsim
