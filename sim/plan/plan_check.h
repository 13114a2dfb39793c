#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/plan/plan.h"

namespace hdpsim {

/// The entry of a plan that a problem is about: `index` counts in one of its lists. `schedule` has one entry per rank.
struct PlanEntry {
  enum class List : std::uint8_t { whole_plan, sequences, micro_batches, schedule };
  List list = List::whole_plan;
  std::size_t index = 0;
};

/// What is wrong with a plan, as a sentence.
struct PlanProblem {
  PlanEntry entry;
  std::string text;
};

/// Every problem of a plan; none if the plan can be executed. The checks are:
///   tokens     every token of every sequence is in exactly one span, and spans are inside their sequence, or begin
///              there where they are padded;
///   capacity   no rank holds more than C tokens after its offload ratio (tokens per rank x resident_share <= C);
///   groups     at least one rank, none twice, all of the pool; ratios from 0 to 1;
///   schedule   each micro-batch occurs exactly once in the list of each rank of its group, and in no other list;
///   waves      expert groups divide the pool, their ranks run equal numbers of micro-batches, and only those of one
///              rank may be empty or padding;
///   updates    micro-batches are in the order of their updates, in the plan and in the list of every rank, and none of
///              the updates has no micro-batch; chunks continue others, and waves run, within one update;
///   deadlock   the ranks' orders agree: no micro-batches, and no waves, wait for each other in a cycle. A cycle is
///              named.
/// O(n log n) in the size of the plan (spans, group sizes and schedules together).
[[nodiscard]] std::vector<PlanProblem> plan_problems(const Plan& plan);

/// The sentences of plan_problems().
[[nodiscard]] std::vector<std::string> check_plan(const Plan& plan);

/// A plan with problems is a bug of the policy that made it: a failed check.
void require_sound(const Plan& plan);

/// The problems of capacity alone, as check_plan() words them: micro-batches that leave more tokens on a rank than it
/// holds. A plan with no others is executable where ranks hold more. O(sum of group sizes + spans).
[[nodiscard]] std::vector<std::string> over_capacity(const Plan& plan);

/// "16439 of 16Ki tokens on a rank": what a plan that holds as much, tokens_held(), exceeds the capacity by; empty if
/// it does not.
[[nodiscard]] std::string capacity_excess(std::int64_t held, std::int64_t capacity);

}  // namespace hdpsim
