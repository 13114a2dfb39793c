#pragma once

#include <cstdint>
#include <optional>

#include "sim/study/point.h"

namespace hdpsim {

/// What `mesh.capacity: auto` chooses in multiples of.
inline constexpr std::int64_t capacity_grain = 256;

/// The largest multiple of 256 tokens, at most those of a step, that the smallest device of the cluster can hold in a
/// micro-batch without offload: on the fullest stage, in a ring if there is a pool, with the channels of its two
/// neighbours. Nothing if not even 256 fit. Rings of many sizes have more channels, and what offload lets a rank take
/// beyond C still needs its logits: such plans may exceed the device, and their runs say so.
[[nodiscard]] std::optional<std::int64_t> largest_capacity(const PointSpec& point);

}  // namespace hdpsim
