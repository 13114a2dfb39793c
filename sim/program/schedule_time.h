#pragma once

#include <span>
#include <vector>

#include "sim/plan/plan_time.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// Seconds of a step by the order of its passes alone: a pass begins when all its workers have come to it and its
/// source (Pipeline::source()) has ended, and the passes of a wave end together. Messages between stages and passes
/// that a schedule runs beside each other are left out.
/// `seconds`: by micro-batch, of a mean stage; `chunk_excess`: WorkModel::chunk_excess; `speeds`: by worker, relative
/// to what `seconds` are of; empty: all are 1. A pass takes as long as its slowest worker. O(passes of all workers).
[[nodiscard]] double schedule_seconds(const Pipeline& pipeline, std::span<const PassSeconds> seconds,
                                      std::span<const ChunkExcess> chunk_excess = {},
                                      std::span<const double> speeds = {});

/// The planner's estimate of a step: schedule_seconds() where ranks wait for each other in pipelines or in waves of
/// experts, PlanTime::step() elsewhere; several updates follow each other. `plan` must be sound. Costs what a Pipeline
/// does.
[[nodiscard]] double estimated_step(const Plan& plan, const WorkModel& work, std::int64_t stages,
                                    const PipelineOptions& options);

}  // namespace hdpsim
