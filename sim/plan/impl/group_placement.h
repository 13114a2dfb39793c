#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/first_problems.h"
#include "sim/plan/impl/stated_groups.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// Gives the groups of a step their ranks and makes micro-batches of them, in the order in which they stand. Every
/// problem is reported, the first of a kind one by one.
class GroupPlacement {
 public:
  /// `plan` has its ranks and its sequences; `step` is the place of the step, for what has no other.
  GroupPlacement(Plan& plan, Position step, Diagnostics& diagnostics)
      : plan_(plan), step_(std::move(step)), diagnostics_(diagnostics) {}

  /// Adds all micro-batches. `lists`: the number of lists of `by_rank`, if that is the form.
  void place(const std::vector<StatedGroup>& groups, std::size_t lists);
  /// Reports sequences that the batch does not have, that are there twice and that are missing.
  void check_sequences(const std::vector<StatedGroup>& groups);

 private:
  [[nodiscard]] std::vector<std::int64_t> ranks_of(const StatedGroup& group, std::size_t lists,
                                                   FirstProblems& problems);
  [[nodiscard]] std::vector<std::int64_t> next_ranks(const StatedGroup& group);
  [[nodiscard]] bool are_of_pool(const StatedGroup& group, const std::vector<std::int64_t>& ranks,
                                 FirstProblems& problems) const;
  void check_round(const StatedGroup& group, const std::vector<std::int64_t>& ranks, FirstProblems& problems);
  void add(const StatedGroup& group, const std::vector<std::int64_t>& ranks);

  Plan& plan_;
  Position step_;
  Diagnostics& diagnostics_;
  std::int64_t next_ = 0;                           // the rank behind the group before
  std::int64_t members_ = 0;                        // ranks in all groups so far
  std::optional<std::size_t> round_;                // that of the group before
  std::vector<std::optional<std::size_t>> rounds_;  // by rank, the last round with it
};

}  // namespace hdpsim
