#pragma once

#include <memory>
#include <vector>

#include "sim/engine/impl/job_port.h"
#include "sim/engine/impl/training_job.h"
#include "sim/engine/simulator.h"

namespace hdpsim {

class Neighbour;

/// One step of the main job and its background, on one event queue and one network. Job 0 is the main job.
class Simulation {
 public:
  /// `queue_all`: see make_exact_step. `forms`: see simulate().
  Simulation(const Program& program, const Machine& machine, Grain grain, const Background& background,
             bool queue_all = false, PassForms* forms = nullptr);
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  [[nodiscard]] Timeline run();

 private:
  void add_neighbours(const Background& background, Grain grain);
  JobPort& new_port();
  void handle(const Event& event);
  void follow_rate_changes();
  void check_not_stuck(std::uint32_t job);

  const Program& program_;
  const Machine& machine_;
  SharedGround ground_;
  std::vector<std::unique_ptr<JobPort>> ports_;  // by job
  std::unique_ptr<TrainingJob> main_;
  std::vector<std::unique_ptr<Neighbour>> neighbours_;  // element i is job i + 1
  std::vector<FlowId> changed_;
};

}  // namespace hdpsim
