#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/plan.h"

namespace hdpsim {

// Some frameworks take several optimizer steps from one batch, each after a part of it, as reinforcement learning does
// with its mini-batches. Such a step of the plan is its updates one after another (MicroBatch::update), and each is
// what a step with one of them is: passes in a pipeline that fills and drains, the reduction of gradients, the
// optimizer, the gathering of parameters, the fixed cost of a step. All ranks take part in the end of each, those
// without a micro-batch of it, too.

/// The updates of a sound plan; 1 for one without micro-batches. O(1).
[[nodiscard]] std::int64_t update_count(const Plan& plan);

/// A plan for every update, in their order: with its micro-batches alone, which have ids from 0 on in the order that
/// they have in the whole plan, and with the lengths of the whole batch. The plan must be sound. O(size of the plan +
/// updates x (ranks + sequences)).
[[nodiscard]] std::vector<Plan> split_by_update(const Plan& plan);

/// The plan that runs plans of one update each, at least one, one after another: what split_by_update() splits again.
[[nodiscard]] Plan joined_updates(std::vector<Plan> updates);

}  // namespace hdpsim
