#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/engine/event_queue.h"
#include "sim/engine/impl/job_port.h"
#include "sim/engine/impl/schedule_progress.h"
#include "sim/engine/impl/stage_messages.h"
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
  std::vector<Bytes>& link_bytes;  ///< By LinkId; what the job's rings and stages send is added.
  bool alone = false;              ///< The job has the network to itself.
};

/// The passes of one step of one job, in one grain. The simulation hands it the job's events and changes of rates.
class StepRun {
 public:
  /// `contention` false lets every message have its links alone.
  StepRun(const StepSetting& setting, bool contention);
  virtual ~StepRun() = default;
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  /// Every worker stands before its first pass.
  void begin();
  void handle(const Event& event);
  /// A flow that was added with this key has another rate.
  void rate_changed(std::uint32_t key);
  /// The share of the bytes of its ring that a pass has sent; 1 for one that does not run.
  [[nodiscard]] virtual double share_sent(PassId id) const = 0;

  [[nodiscard]] const ScheduleProgress& progress() const { return progress_; }
  [[nodiscard]] const Program& program() const { return program_; }
  /// By worker: when it ended its last pass.
  [[nodiscard]] const std::vector<Instant>& finished() const { return free_since_; }
  /// Everything but the end of the step.
  [[nodiscard]] Timeline take_timeline();
  /// Takes from link_bytes what has not been sent yet. O(passes).
  void take_back_unsent();

 protected:
  /// The worker stands before a pass and has what it needs of other stages. `all_are_here`: its whole group does.
  virtual void arrive(WorkerId worker, PassId pass, bool all_are_here) = 0;
  virtual void handle_pass(const Event& event) = 0;
  virtual void pass_rate_changed(std::uint32_t key) = 0;

  /// The worker's pass ends now, and what the next stage needs of it is sent.
  void end_pass(WorkerId worker);
  /// The worker goes on to its next pass, as soon as the message is there that this one needs.
  void go_on(WorkerId worker);

  const Program& program_;
  const Pipeline& pipeline_;
  const Machine& machine_;
  JobQueue& queue_;
  JobFlows& flows_;
  std::vector<Bytes>& link_bytes_;
  ScheduleProgress progress_;
  std::vector<Instant> free_since_;  ///< By worker: when it ended its last pass, or stood before the next one.
  std::vector<MicroBatchInterval> intervals_;  ///< By pass.
  Timeline timeline_;

 private:
  /// The parameters of the worker's pass come on a stream of their own, which began with the step.
  [[nodiscard]] bool parameters_are_there(WorkerId worker, PassId pass);
  void parameters_arrived(WorkerId worker);
  /// The gradients that a pass has summed are reduced on that stream, beside what follows.
  void reduce_gradients(WorkerId worker, PassId pass);
  void end_pool_streams();

  static constexpr std::uint32_t parameters_came = ~0U;  ///< A tag: go on with the pass.

  std::vector<Instant> pool_free_;                   ///< By worker: of the collectives beside its passes.
  std::vector<std::optional<PassId>> gathered_for_;  ///< By worker: the last pass whose parameters were asked for.
  StageMessages messages_;
  /// By worker: passes whose message has come and that it has not begun.
  std::vector<std::vector<PassId>> inbox_;
  std::vector<bool> waits_;  ///< By worker: for a message.
};

/// `contention` false lets every ring have its links alone.
[[nodiscard]] std::unique_ptr<StepRun> make_fluid_step(const StepSetting& setting, bool contention);
/// Passes of whose rings no message can meet another one are run without the event queue. `queue_all` runs them with
/// it, and has a flow for every message over links that several devices use, which gives the same timeline.
[[nodiscard]] std::unique_ptr<StepRun> make_exact_step(const StepSetting& setting, bool queue_all);
[[nodiscard]] std::unique_ptr<StepRun> make_step(const StepSetting& setting, Grain grain, bool queue_all = false);

}  // namespace hdpsim
