#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/id.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// Where every rank of a plan stands in its schedule.
class Progress {
 public:
  explicit Progress(const Plan& plan);

  /// The micro-batch that the rank runs or waits for; nothing behind its last one.
  [[nodiscard]] std::optional<MicroBatchId> current(HdpRank rank) const;
  /// The rank stands before its current micro-batch. Returns that micro-batch if its whole group now does.
  std::optional<MicroBatchId> arrive(HdpRank rank);
  /// The rank has ended its current micro-batch.
  void advance(HdpRank rank) {
    if (++position_[rank.index()] == plan_.schedule[rank.index()].size()) --unfinished_;
  }
  /// True if every rank has ended its schedule.
  [[nodiscard]] bool all_ended() const { return unfinished_ == 0; }
  /// A check of the same; otherwise a CheckFailure that says who waits for whom in the program of `whose` job.
  void check_all_ended(std::string_view whose) const;

 private:
  const Plan& plan_;
  std::vector<std::size_t> position_;      // by rank
  std::vector<std::size_t> still_absent_;  // by micro-batch
  std::size_t unfinished_ = 0;             // ranks
};

}  // namespace hdpsim
