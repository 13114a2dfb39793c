#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// Synchronizes the ranks of expert groups that span several ranks, in the exact fidelity: all-to-all n of a group on
/// one stage begins when all workers of the group have reached it.
class ExpertBoard {
 public:
  ExpertBoard(const Pipeline& pipeline, std::int64_t expert_ranks)
      : pipeline_(pipeline),
        ranks_(static_cast<std::size_t>(expert_ranks)),
        groups_(pipeline.workers() / ranks_),
        came_(pipeline.workers()) {}

  /// False if every expert group lies within one rank.
  [[nodiscard]] bool joins_ranks() const { return ranks_ > 1; }

  /// An all-to-all that begins: its workers and its time, which is the longest of the workers' times.
  struct Begun {
    std::vector<WorkerId> workers;
    Duration time;
  };
  /// A worker has reached its next all-to-all, whose messages would take it `time`. Returns no value while other
  /// workers of the group are missing.
  [[nodiscard]] std::optional<Begun> come(WorkerId worker, Instant now, Duration time) {
    came_[worker.index()] = now;
    Group& group = groups_[group_of(worker)];
    group.longest = std::max(group.longest, time);
    if (++group.came < ranks_) return std::nullopt;
    const Duration longest = group.longest;
    group = {};
    return Begun{workers_of(worker), longest};
  }
  /// When a worker reached its latest all-to-all.
  [[nodiscard]] Instant came(WorkerId worker) const { return came_[worker.index()]; }

 private:
  struct Group {
    std::size_t came = 0;
    Duration longest;
  };

  [[nodiscard]] std::size_t first_rank(WorkerId worker) const {
    return pipeline_.rank_of(worker).index() / ranks_ * ranks_;
  }
  [[nodiscard]] std::size_t group_of(WorkerId worker) const {
    const auto stages = static_cast<std::size_t>(pipeline_.stages());
    return first_rank(worker) / ranks_ * stages + static_cast<std::size_t>(pipeline_.stage_of(worker));
  }
  [[nodiscard]] std::vector<WorkerId> workers_of(WorkerId worker) const {
    std::vector<WorkerId> workers;
    for (std::size_t i = 0; i < ranks_; ++i) {
      workers.push_back(pipeline_.worker(HdpRank(first_rank(worker) + i), pipeline_.stage_of(worker)));
    }
    return workers;
  }

  const Pipeline& pipeline_;
  std::size_t ranks_;
  std::vector<Group> groups_;
  std::vector<Instant> came_;  // by worker
};

}  // namespace hdpsim
