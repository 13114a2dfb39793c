#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "sim/cost/coverage.h"
#include "sim/run/step.h"

namespace hdpsim {

/// A step that was simulated, with what it asked of its point's profile.
struct KnownStep {
  SimulatedStep step;
  Coverage coverage;
};

/// Steps of the runs of one study that were simulated before, so that they are not simulated again. Every function may
/// be called from any thread.
class KnownSteps {
 public:
  /// Workers and links of all steps: some hundred MB.
  static constexpr std::size_t most_entries = 8'000'000;
  /// What has no room is not kept.
  explicit KnownSteps(std::size_t room = most_entries) : room_(room) {}

  /// Null if it is not known.
  [[nodiscard]] std::shared_ptr<const KnownStep> find(std::size_t run, std::int64_t step) const;
  /// Adds a step if there is room.
  void keep(std::size_t run, const KnownStep& step);

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::pair<std::size_t, std::int64_t>, std::shared_ptr<const KnownStep>> steps_;
  std::size_t room_;  // for workers and links
};

}  // namespace hdpsim
