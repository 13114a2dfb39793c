#pragma once

#include <memory>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/impl/job_port.h"
#include "sim/engine/impl/progress.h"
#include "sim/engine/machine.h"
#include "sim/engine/simulator.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// What a step of a job runs on.
struct StepSetting {
  const Program& program;
  const Machine& machine;
  JobPort& port;
  std::vector<Bytes>& link_bytes;  ///< By LinkId; what the job's rings send is added.
};

/// The micro-batches of one step of one job, in one grain. The simulation hands it the job's events and changes of
/// rates.
class StepRun {
 public:
  explicit StepRun(const StepSetting& setting);
  virtual ~StepRun() = default;
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  /// Every rank stands before its first micro-batch.
  virtual void begin() = 0;
  virtual void handle(const Event& event) = 0;
  /// A flow that was added with this key has another rate.
  virtual void rate_changed(std::uint32_t key) = 0;
  /// The share of its bytes that a micro-batch has sent; 1 for one that does not run.
  [[nodiscard]] virtual double share_sent(MicroBatchId id) const = 0;

  [[nodiscard]] const Progress& progress() const { return progress_; }
  [[nodiscard]] const Program& program() const { return program_; }
  /// By rank: when it ended its last micro-batch.
  [[nodiscard]] const std::vector<Instant>& finished() const { return free_since_; }
  /// Everything but the end of the step.
  [[nodiscard]] Timeline take_timeline() { return std::move(timeline_); }
  /// Takes from link_bytes what running micro-batches have not sent yet. O(micro-batches).
  void take_back_unsent();

 protected:
  const Program& program_;
  const Plan& plan_;
  const Machine& machine_;
  JobQueue& queue_;
  JobFlows& flows_;
  std::vector<Bytes>& link_bytes_;
  Progress progress_;
  std::vector<Instant> free_since_;  ///< By rank: when it ended (fluid: or began) its last micro-batch.
  Timeline timeline_;
};

/// `contention` false lets every ring have its links alone.
[[nodiscard]] std::unique_ptr<StepRun> make_fluid_step(const StepSetting& setting, bool contention);
/// Micro-batches whose rings share no link are run without the event queue; `queue_all` runs them with it, which gives
/// the same timeline.
[[nodiscard]] std::unique_ptr<StepRun> make_exact_step(const StepSetting& setting, bool queue_all);
[[nodiscard]] std::unique_ptr<StepRun> make_step(const StepSetting& setting, Grain grain, bool queue_all = false);

}  // namespace hdpsim
