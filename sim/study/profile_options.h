#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/document/key.h"
#include "sim/model/product_format.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// The words of `kernels.linear`, which say what layers' products multiply.
[[nodiscard]] const std::vector<std::pair<std::string, ProductFormat>>& product_format_words();

/// The keys of `kernels`.
[[nodiscard]] const std::vector<KeyText>& kernel_keys();

/// `kernels: {attention: flash | unfused | triton | flash2 | cudnn, linear: bf16 | fp8 | fp8_current | fp8_blocks |
/// mxfp8 | nvfp4, launch: eager | graphs}` of a study, all optional: which of the kernels that a device can run a
/// framework runs, and how. `unfused` writes the square of scores to memory, as frameworks did before FlashAttention;
/// `triton`, `flash2` and `cudnn` use the profile's curves of that OtherAttention, and narrow formats use its table of
/// them: the profile must have these. Kernels that a CUDA graph launches (`graphs`) do not wait for the host; others
/// do, by the profile's `host_issue`. Returns the profile with the choice made. Problems are reported.
[[nodiscard]] std::shared_ptr<const DeviceProfile> with_kernels(std::shared_ptr<const DeviceProfile> profile,
                                                                const Value& kernels, Diagnostics& diagnostics);

/// The keys of `overheads`.
[[nodiscard]] const std::vector<KeyText>& overhead_keys();

/// `overheads: {per_step: 2 s, per_micro_batch: 5 ms, host_issue: 60 us}` of a study, all optional: the time of its
/// framework beyond all that is modelled, and of its host for a kernel, instead of the profile's `overheads` of these
/// names. `{host: megatron-core-2024}` takes the last from a file of the folder `hosts`, by device, with its source.
/// Returns the profile with these figures. Problems are reported.
[[nodiscard]] std::shared_ptr<const DeviceProfile> with_overheads(std::shared_ptr<const DeviceProfile> profile,
                                                                  const Value& overheads,
                                                                  const std::filesystem::path& hosts,
                                                                  Diagnostics& diagnostics);

}  // namespace hdpsim
