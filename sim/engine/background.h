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

/// A job that trains beside the main job, on other devices, as long as the main job's step lasts. Its first step begins
/// with that of the main job, each further one when the one before has ended.
struct BackgroundJob {
  std::string name;            ///< For messages.
  Machine* machine = nullptr;  ///< Over the network of the main job's machine.
  LoweringOptions lowering;
  /// The plan of its n-th step beside this one of the main job, n = 0, 1, ... A step must take time.
  std::function<Plan(std::int64_t)> plan;
};

/// Messages without end, all at once: each pair of devices is one flow that takes what it gets.
struct BackgroundTraffic {
  std::string name;
  std::vector<Message> messages;
};

/// What else uses the network while a step of the main job is simulated.
struct Background {
  std::vector<BackgroundJob> jobs;
  std::vector<BackgroundTraffic> traffic;
  [[nodiscard]] bool empty() const { return jobs.empty() && traffic.empty(); }
};

}  // namespace hdpsim
