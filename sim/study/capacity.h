#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/analysis/memory_use.h"
#include "sim/plan/connection_table.h"
#include "sim/plan/planner.h"
#include "sim/program/program.h"
#include "sim/trace/batch_source.h"

namespace hdpsim {

/// What the plans of a job have to fit into.
struct DeviceRoom {
  Bytes memory;                         ///< Memory of the smallest device.
  std::optional<Bytes> per_connection;  ///< Memory of a channel to another device; empty: not known.
  Communicators communicators = Communicators::one;
};

/// The memory of all devices while a plan of a job runs in the order of `pipeline`. All arguments must outlive the
/// result.
[[nodiscard]] PlanMemory memory_of(const Pipeline& pipeline, const LoweringOptions& job, const ChannelMemory& channels);

/// Whether a plan of the job fits into the memory of every device.
[[nodiscard]] bool fits(const Plan& plan, const LoweringOptions& job, const DeviceRoom& room);

/// `mesh.capacity: auto` chooses multiples of this number of tokens.
inline constexpr std::int64_t capacity_grain = 256;

/// The largest multiple of 256 tokens up to `most`, or 256, that fits. If a number fits, all smaller ones must fit,
/// too. Empty if none fits. Calls `fits` O(log most) times.
[[nodiscard]] std::optional<std::int64_t> largest_fitting(std::int64_t most,
                                                          const std::function<bool(std::int64_t)>& fits);

/// The largest multiple of 256 tokens, at most those of a step, that the smallest device of the cluster can hold in a
/// micro-batch without offload: on the fullest stage, in a ring if there is a data-parallel group, with the channels of
/// its two neighbours and with the other micro-batches that the pipeline's schedule has in flight. A schedule that
/// holds all micro-batches of a step (GPipe) is assumed to hold an even share of the step's tokens, at least C; whether
/// the plans of a policy give a rank more is checked when they are made (study.cpp). Ranks that gather keys and values
/// gather those of the longest sequence. The largest gaps of the allocator fit as well (with_largest_gaps()), unless
/// the pool then holds no longest sequence. Empty if not even 256 fit. Rings of many sizes have more channels: such
/// plans may exceed the device, and their runs report it.
[[nodiscard]] std::optional<std::int64_t> largest_capacity(const LoweringOptions& job, const DeviceRoom& room,
                                                           const BatchOptions& batch);

/// Whether the smallest device holds micro-batches of `capacity` tokens, counted as largest_capacity() counts, without
/// the largest gaps.
[[nodiscard]] bool holds_capacity(const LoweringOptions& job, const DeviceRoom& room, const BatchOptions& batch,
                                  std::int64_t capacity);

/// That largest_capacity() found no capacity for devices of this memory, or that no plans fit.
[[nodiscard]] std::string no_capacity_text(const LoweringOptions& job, Bytes memory);

/// The room for offload in plans for a chosen capacity: every rank that holds more than C tokens with it still fits
/// the device, its logits and buffers included.
[[nodiscard]] OffloadRoom offload_room(const LoweringOptions& job, const DeviceRoom& room, const BatchOptions& batch,
                                       std::int64_t capacity);

}  // namespace hdpsim
