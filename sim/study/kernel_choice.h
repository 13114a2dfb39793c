#pragma once

#include <memory>
#include <vector>

#include "sim/document/key.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The keys of `kernels`.
[[nodiscard]] const std::vector<KeyText>& kernel_keys();

/// `kernels: {attention: flash | unfused | triton | flash2 | cudnn, linear: bf16 | fp8, launch: eager | graphs}` of a
/// study, each of which may be left out: which of the kernels that a device can run a framework runs, and how. `unfused`
/// writes the square of scores to memory, as frameworks did before FlashAttention; `triton`, `flash2` and `cudnn` are
/// the profile's curves of that OtherAttention, and `fp8` multiplies with its `gemm_fp8`: all need them. Kernels that a
/// CUDA graph launches wait for no host (`graphs`); others do, as long as the profile's `host_issue` says.
/// Returns the profile with the choice made. What is wrong is reported.
[[nodiscard]] std::shared_ptr<const DeviceProfile> with_kernels(std::shared_ptr<const DeviceProfile> profile,
                                                                const Value& kernels, Diagnostics& diagnostics);

}  // namespace hdpsim
