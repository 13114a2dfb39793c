#pragma once

#include "sim/plan/work_model.h"

namespace hdpsim::test {

/// A work model whose rings take in one direction what it states for both, step by step: attention and the messages of
/// every hop, which are equally long. Messages after the last step are none.
inline WorkModel with_plain_rings(WorkModel work) {
  const StepCost step{work.per_area + work.step_area, work.step_token, work.step_fixed};
  work.passes = {
      .forward = {.own = {work.per_area}, .step = step, .last_step = step, .first = {1, 1}, .between = {1, 1}},
      .per_token = work.per_token,
      .per_micro_batch = work.per_micro_batch};
  return work;
}

}  // namespace hdpsim::test
