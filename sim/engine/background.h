#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/engine/machine.h"
#include "sim/network/traffic.h"
#include "sim/plan/plan.h"
#include "sim/program/program.h"

namespace hdpsim {

/// A job that trains on other devices while the main job's step lasts. Its first step begins together with the main
/// job's step, and every further step begins when the previous one has ended.
struct BackgroundJob {
  std::string name;            ///< The job's name in error messages.
  Machine* machine = nullptr;  ///< It must use the network of the main job's machine (checked).
  LoweringOptions lowering;
  /// Returns the plan of the job's n-th step during this step of the main job, n = 0, 1, ... A step must take time
  /// (checked).
  std::function<Plan(std::int64_t)> plan;
};

/// Endless traffic: all messages are sent at the same time, and each is one flow that takes all bandwidth that it gets.
struct BackgroundTraffic {
  std::string name;
  std::vector<Message> messages;
};

/// Everything else that uses the network while a step of the main job is simulated.
struct Background {
  std::vector<BackgroundJob> jobs;
  std::vector<BackgroundTraffic> traffic;
  [[nodiscard]] bool empty() const { return jobs.empty() && traffic.empty(); }
};

}  // namespace hdpsim
