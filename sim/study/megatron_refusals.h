#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/plan.h"
#include "sim/study/point.h"

namespace hdpsim {

// What Megatron-LM refuses to run, and other frameworks may run. The simulator runs it all the same.

/// Why the interleaved schedule refuses so many micro-batches of a replica; empty if it does not. `group`:
/// micro-batches that go through a chunk before the next chunk's turn. The last group must be a whole one or have as
/// many as there are stages (NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/schedules.py,
/// forward_backward_pipelining_with_interleaving; before core_r0.9 every group has as many as there are stages).
[[nodiscard]] std::string interleaving_problem(std::int64_t micro_batches, std::int64_t stages, std::int64_t group);

/// What it refuses of a mesh, whatever the plan: layers that are left over (megatron/training/arguments.py,
/// validate_args), two interleaved stages whose messages nothing hides. Schedules that it does not have are none of its
/// business.
[[nodiscard]] std::vector<std::string> megatron_mesh_problems(const PointSpec& point);

/// Whether it refuses some plans of a point. O(ranks of the pool).
[[nodiscard]] bool may_refuse_plans(const PointSpec& point);

/// What it refuses of a plan on this mesh: micro-batches under the interleaved schedule, groups that heads do not
/// divide (Transformer Engine, AttnFuncWithCPAndQKVOA2A). The first of each kind.
[[nodiscard]] std::vector<std::string> megatron_plan_problems(const PointSpec& point, const Plan& plan);

}  // namespace hdpsim
