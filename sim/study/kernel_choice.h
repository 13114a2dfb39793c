#pragma once

#include <memory>

#include "sim/document/document.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// `kernels: {attention: flash | unfused, linear: bf16 | fp8}` of a study, each of which may be left out: which of the
/// kernels that a device can run a framework runs. `unfused` writes the square of scores to memory, as frameworks did
/// before FlashAttention; `fp8` multiplies with the profile's `gemm_fp8` and needs it.
/// Returns the profile with the choice made. What is wrong is reported.
[[nodiscard]] std::shared_ptr<const DeviceProfile> with_kernels(std::shared_ptr<const DeviceProfile> profile,
                                                                const Value& kernels, Diagnostics& diagnostics);

}  // namespace hdpsim
