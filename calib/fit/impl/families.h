#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "calib/fit/samples.h"
#include "sim/profile/device_profile.h"

namespace hdpsim::calib {

/// Fits the launches of one mask, direction and head dimension with the terms of AttentionFit: launch, pairs (constant
/// or by length), rows, rows of tiles and waves. At least one sample.
[[nodiscard]] AttentionFit fit_attention(const std::vector<AttentionTiming>& samples, const Circumstances& device,
                                         std::uint64_t seed);

/// Fits matrix products over the shapes of the table.
[[nodiscard]] GemmFit fit_gemm(const GemmTable& table, std::int64_t multiprocessors, std::uint64_t seed);

/// Fits memory-bound kernels: first the fit for all of them, then each kernel's own, by name. At least one sample.
/// Kernels have curves of their own or, if that predicts better, one curve times a factor per kernel: the sizes of the
/// caches, at which a curve bends, are the device's.
[[nodiscard]] std::vector<MemoryBoundFit> fit_memory_bound(std::vector<MemoryBoundSample> samples, std::uint64_t seed);

/// Fits copies of one kind. At least one sample.
[[nodiscard]] CopyFit fit_copies(std::vector<CopySample> samples, std::uint64_t seed);

/// Fits messages of one kind, link and number of ranks: the lower envelope of up to four lines, or a curve. At least
/// one sample.
[[nodiscard]] MessageFit fit_messages(const std::vector<MessageSample>& samples, std::uint64_t seed);

}  // namespace hdpsim::calib
