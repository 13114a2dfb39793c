#pragma once

#include <optional>

#include "sim/analysis/memory.h"
#include "sim/plan/connection_table.h"
#include "sim/program/program.h"

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

}  // namespace hdpsim
