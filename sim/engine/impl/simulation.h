#pragma once

#include <memory>
#include <vector>

#include "sim/engine/impl/job_port.h"
#include "sim/engine/impl/training_job.h"
#include "sim/engine/simulator.h"

namespace hdpsim {

class Neighbour;

/// The programs of a step's updates (sim/plan/updates.h), which run one after another.
class UpdatePrograms {
 public:
  /// `step`: the program of the whole step, which must outlive this object.
  explicit UpdatePrograms(const Program& step);
  UpdatePrograms(const UpdatePrograms&) = delete;
  UpdatePrograms& operator=(const UpdatePrograms&) = delete;

  [[nodiscard]] std::size_t count() const { return programs_.size(); }
  [[nodiscard]] const Program& operator[](std::size_t update) const { return *programs_[update]; }

 private:
  std::vector<Plan> plans_;  // of several updates; programs refer to them
  std::vector<std::unique_ptr<const Program>> made_;
  std::vector<const Program*> programs_;
};

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
  void run_update();
  void add_neighbours(const Background& background, Grain grain);
  JobPort& new_port();
  void handle(const Event& event);
  void follow_rate_changes();
  void check_not_stuck(std::uint32_t job);

  UpdatePrograms updates_;
  const Machine& machine_;
  SharedGround ground_;
  std::vector<std::unique_ptr<JobPort>> ports_;  // by job
  std::unique_ptr<TrainingJob> main_;
  std::vector<std::unique_ptr<Neighbour>> neighbours_;  // element i is job i + 1
  std::vector<FlowId> changed_;
};

}  // namespace hdpsim
