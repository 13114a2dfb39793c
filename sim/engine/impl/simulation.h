#pragma once

#include <memory>
#include <vector>

#include "sim/engine/background.h"
#include "sim/engine/impl/job_port.h"
#include "sim/engine/impl/training_job.h"
#include "sim/engine/simulator.h"

namespace hdpsim {

/// A background job or background traffic, which uses the network while the main job's step lasts.
class Neighbour {
 public:
  virtual ~Neighbour() = default;
  virtual void begin() = 0;
  virtual void handle(const Event& event) = 0;
  virtual void rate_changed(std::uint32_t key) = 0;
  /// Called when none of its events is left. A job then throws a CheckFailure that says what it waits for.
  virtual void run_out() = 0;
  /// Adds the bytes that it has sent so far, by LinkId. Call once, at the end.
  virtual void add_traffic(LinkTraffic& links) = 0;
};

/// The network must be idle. The port and the other arguments must outlive the neighbour.
[[nodiscard]] std::unique_ptr<Neighbour> make_neighbour(const BackgroundJob& job, Grain grain, JobPort& port);
[[nodiscard]] std::unique_ptr<Neighbour> make_neighbour(const BackgroundTraffic& traffic, const NetworkModel& network,
                                                        JobPort& port);

/// One step of the main job and its background, on one event queue and one network. Job 0 is the main job.
class Simulation {
 public:
  /// `queue_all`: see make_exact_step.
  Simulation(const Program& program, const Machine& machine, Grain grain, const Background& background,
             bool queue_all = false);
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
