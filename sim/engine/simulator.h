#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/engine/machine.h"
#include "sim/engine/pass_forms.h"
#include "sim/engine/timeline.h"
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

/// The fidelity of a simulation. All fidelities simulate the same program.
enum class Grain {
  fluid,        ///< A pass of a group is one coupled activity; only contended passes are simulated layer by layer.
  exact,        ///< Every ring step, layer and copy of every rank is an event.
  closed_form,  ///< Like fluid, but without contention: no link is shared.
};

/// Simulates one step of a program. Deterministic. The program's plan must have passed the plan checker; a deadlock of
/// the simulated program throws a CheckFailure that says which ranks wait in which micro-batch.
///
/// Number of events, where m is the sum of the group sizes, L the number of layers and N the size of the largest group:
/// O(micro-batches) in fluid, with contended links O(L x contended micro-batches); O(L N m) in exact.
///
/// A background shares the network with the step, and each of its jobs' steps adds its own events. The closed form
/// supports no background and throws a CheckFailure.
///
/// `forms` keeps what steps of the job on this machine have in common; null: nothing is kept. It changes no answer.
[[nodiscard]] Timeline simulate(const Program& program, Machine& machine, Grain grain,
                                const Background& background = {}, PassForms* forms = nullptr);

}  // namespace hdpsim
