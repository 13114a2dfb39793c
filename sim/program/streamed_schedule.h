#pragma once

#include <string_view>

#include "sim/program/schedule.h"

namespace hdpsim {

/// RoundPipe (stages that go round the GPUs, with weights from the host), whose host updates parameters while the next
/// step runs, or behind each step.
inline constexpr std::string_view streamed_schedule = "roundpipe";
inline constexpr std::string_view drained_streamed_schedule = "roundpipe-sync";

/// Whether the stages of such a pipeline belong to no device: under one of these two schedules.
///
/// A Schedule cannot say that: its chunks are on one stage forward and backward. Planners, bounds and what is lowered
/// see an even pipeline of as many stages, whose devices have the same work on average; times and memory of a step come
/// from sim/roundpipe.
[[nodiscard]] inline bool is_streamed(const PipelineOptions& pipeline) {
  return pipeline.schedule == streamed_schedule || pipeline.schedule == drained_streamed_schedule;
}

}  // namespace hdpsim
