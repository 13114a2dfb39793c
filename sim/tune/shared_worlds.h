#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "sim/engine/world.h"
#include "sim/program/program.h"
#include "sim/study/study_point.h"

namespace hdpsim {

/// A world of a job, and what all steps of the job are lowered from.
struct JobWorld {
  std::unique_ptr<World> world;
  std::shared_ptr<const LoweringContext> lowered;
};

/// Worlds that candidates with the same job take one after the other: prices of passes that one has asked for are known
/// to the next. Answers do not depend on who had a world before. Keeps those given back last; several threads may use
/// it at once.
class SharedWorlds {
 public:
  /// The newest world that was given back for this job, or a new one of this point. The caller's alone until it gives
  /// it back. Points of one job differ in their plans, batches and capacity only.
  [[nodiscard]] JobWorld take(const std::string& job, const StudyPoint& point);
  void give_back(std::string job, JobWorld world);

 private:
  /// A world of some hundred devices with its prices takes some megabytes.
  static constexpr std::size_t most_kept = 64;

  std::mutex mutex_;                                  // guards kept_
  std::list<std::pair<std::string, JobWorld>> kept_;  // by job, the newest first
};

}  // namespace hdpsim
