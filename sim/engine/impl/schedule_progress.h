#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/id.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// The position of every worker in its list of passes.
class ScheduleProgress {
 public:
  explicit ScheduleProgress(const Pipeline& pipeline);

  /// The pass that the worker runs or waits for; no value after its last pass.
  [[nodiscard]] std::optional<PassId> current(WorkerId worker) const;
  /// The worker is about to begin its current pass and has everything that it needs from other stages. Returns this
  /// pass if the same now holds for its whole group.
  std::optional<PassId> arrive(WorkerId worker);
  /// The worker has ended its current pass.
  void advance(WorkerId worker) {
    if (++position_[worker.index()] == pipeline_.orders()[worker.index()].size()) --unfinished_;
  }
  /// True if every worker has ended its schedule.
  [[nodiscard]] bool all_ended() const { return unfinished_ == 0; }
  /// Unless every worker has ended its schedule, throws a CheckFailure that says who waits for whom in the program of
  /// the job `whose`.
  void check_all_ended(std::string_view whose) const;

 private:
  [[nodiscard]] std::string name_of(WorkerId worker) const;

  const Pipeline& pipeline_;
  std::vector<std::size_t> position_;      // by worker
  std::vector<std::size_t> still_absent_;  // by pass: ranks that have not arrived
  std::size_t unfinished_ = 0;             // workers
};

}  // namespace hdpsim
