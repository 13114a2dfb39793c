#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/plan/planner.h"
#include "sim/study/point.h"

namespace hdpsim {

/// What `mesh.capacity: auto` chooses in multiples of.
inline constexpr std::int64_t capacity_grain = 256;

/// The largest multiple of 256 tokens up to `most`, or 256, that fits; what fits must fit below, too. Empty if none does.
/// Calls `fits` O(log most) times.
[[nodiscard]] std::optional<std::int64_t> largest_fitting(std::int64_t most,
                                                          const std::function<bool(std::int64_t)>& fits);

/// The largest multiple of 256 tokens, at most those of a step, that the smallest device of the cluster can hold in a
/// micro-batch without offload: on the fullest stage, in a ring if there is a data-parallel group, with the channels of
/// its two neighbours and with as many other micro-batches in flight as the pipeline's schedule holds. A schedule that
/// holds all micro-batches of a step (GPipe) is taken to hold an even share of the step's tokens, at least C: whether a
/// policy's plans give a rank more shows when they are made (plans_fit). Empty if not even 256 fit. Rings of many sizes have more channels: such plans may exceed the device, and their runs say so.
[[nodiscard]] std::optional<std::int64_t> largest_capacity(const PointSpec& point);

/// Reports that largest_capacity(), or the plans for it, found none.
void report_no_capacity(const PointSpec& point, const Position& where, Diagnostics& diagnostics);

/// What a plan for the chosen capacity may offload: every rank that holds more than C tokens by it still fits the
/// device, its logits and buffers included.
[[nodiscard]] OffloadRoom offload_room(const PointSpec& point);

}  // namespace hdpsim
