#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/id.h"
#include "sim/engine/collective_traffic.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/impl/connection_set_up.h"
#include "sim/engine/impl/job_port.h"
#include "sim/engine/impl/stage_messages.h"
#include "sim/engine/machine.h"
#include "sim/engine/pass_forms.h"
#include "sim/engine/priced_program.h"
#include "sim/engine/simulator.h"
#include "sim/engine/timeline.h"
#include "sim/program/pipeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// The position of every worker in its list of passes.
class ScheduleProgress {
 public:
  explicit ScheduleProgress(const Pipeline& pipeline);

  /// The pass that the worker runs or waits for; no value after its last pass.
  [[nodiscard]] std::optional<PassId> current(WorkerId worker) const;
  /// The worker is about to begin its current pass and has everything that it needs from other stages. Returns this
  /// pass if the same now holds for its whole group.
  std::optional<PassId> arrive(WorkerId worker);
  /// The worker has ended its current pass.
  void advance(WorkerId worker) {
    if (++position_[worker.index()] == pipeline_.orders()[worker.index()].size()) --unfinished_;
  }
  /// True if every worker has ended its schedule.
  [[nodiscard]] bool all_ended() const { return unfinished_ == 0; }
  /// Unless every worker has ended its schedule, throws a CheckFailure that says who waits for whom in the program of
  /// the job `whose`.
  void check_all_ended(std::string_view whose) const;

 private:
  [[nodiscard]] std::string name_of(WorkerId worker) const;

  const Pipeline& pipeline_;
  std::vector<std::size_t> position_;      // by worker
  std::vector<std::size_t> still_absent_;  // by pass: ranks that have not arrived
  std::size_t unfinished_ = 0;             // workers
};

/// What the simulation of a job's step needs.
struct StepSetting {
  const Program& program;
  const Machine& machine;
  JobPort& port;
  LinkTraffic& links;            ///< What the job's rings and stage messages send is added.
  TrafficCount& collectives;     ///< What collectives send is added, except at the end of the step.
  ConnectionSetUp& connections;  ///< What the job has set up in this step.
  bool alone = false;            ///< The job has the network to itself.
  PassForms* forms = nullptr;    ///< That the job's steps share; null: the step has its own.
};

/// The passes of one step of one job in one fidelity. The simulation passes the job's events and rate changes on to it.
class StepRun {
 public:
  /// If `contention` is false, every message between stages has its links to itself.
  StepRun(const StepSetting& setting, bool contention);
  virtual ~StepRun() = default;
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  /// Starts the step: every worker goes to its first pass.
  void begin();
  void handle(const Event& event);
  /// The rate of a flow that was added with this key has changed.
  void rate_changed(std::uint32_t key);
  /// The share of its ring's bytes that a pass has sent; 1 for a pass that does not run.
  [[nodiscard]] virtual double share_sent(PassId id) const = 0;

  [[nodiscard]] const ScheduleProgress& progress() const { return progress_; }
  [[nodiscard]] const Program& program() const { return program_; }
  /// By worker: when it ended its last pass.
  [[nodiscard]] const std::vector<Instant>& finished() const { return free_since_; }
  /// When the last of the data-parallel collectives that passes have started ends. O(workers).
  [[nodiscard]] Instant collectives_end() const;
  /// The timeline without the end of the step (finish_step).
  [[nodiscard]] Timeline take_timeline();
  /// Subtracts from the links' traffic what has not been sent yet. O(passes).
  void take_back_unsent();

 protected:
  /// The worker is about to begin a pass and has what it needs from other stages. `all_are_here`: this holds for its
  /// whole group.
  virtual void arrive(WorkerId worker, PassId pass, bool all_are_here) = 0;
  virtual void handle_pass(const Event& event) = 0;
  virtual void pass_rate_changed(std::uint32_t key) = 0;

  /// Counts `share` of what the collectives of a pass send, for these workers of its group.
  void count_collectives(PassId id, const PricedProgram& priced, std::span<const WorkerId> workers, double share = 1);
  /// The worker's pass ends now, and its result is sent to the next stage.
  void end_pass(WorkerId worker);
  /// The worker goes on to its next pass as soon as it has sent what no pass overlaps, and the message that this
  /// pass needs has arrived.
  void go_on(WorkerId worker);

  const Program& program_;
  const Pipeline& pipeline_;
  const Machine& machine_;
  JobQueue& queue_;
  JobFlows& flows_;
  LinkTraffic& links_;
  TrafficCount& collectives_;
  ScheduleProgress progress_;
  std::vector<Instant> free_since_;            ///< By worker: when it ended its last pass, or could begin the next one.
  std::vector<MicroBatchInterval> intervals_;  ///< By pass.
  Timeline timeline_;

 private:
  /// Whether the parameters of the worker's pass have been gathered; if not, parameters_arrived() will be called. The
  /// all-gathers run one after another on a separate stream, which begins with the step.
  [[nodiscard]] bool parameters_are_there(WorkerId worker, PassId pass);
  void parameters_arrived(WorkerId worker);
  /// The worker's message has arrived: where no pass overlaps it, the worker goes on now.
  void sent(WorkerId worker);
  /// Reduces the gradients that a pass has summed on the same stream, overlapping with the following passes.
  void reduce_gradients(WorkerId worker, PassId pass);
  void end_pool_streams();

  static constexpr std::uint32_t parameters_came = ~0U;  ///< Event tag: the parameters of the pass have been gathered.

  std::vector<Instant> pool_free_;  ///< By worker: when its stream of data-parallel collectives is free.
  std::vector<std::optional<PassId>> gathered_for_;  ///< By worker: the last pass whose parameters were requested.
  StageMessages messages_;
  /// By worker: passes whose message has arrived and that have not begun.
  std::vector<std::vector<PassId>> inbox_;
  std::vector<bool> waits_;  ///< By worker: whether it waits for a message.
  std::vector<bool> sends_;  ///< By worker: whether it sends a message that no pass overlaps.
};

/// If `contention` is false, every ring has its links to itself.
[[nodiscard]] std::unique_ptr<StepRun> make_fluid_step(const StepSetting& setting, bool contention);
/// Passes whose ring messages can never overlap with other messages are run without the event queue. `queue_all` runs
/// them with it and makes every message over links of several devices a flow; the timeline is the same.
[[nodiscard]] std::unique_ptr<StepRun> make_exact_step(const StepSetting& setting, bool queue_all);
[[nodiscard]] std::unique_ptr<StepRun> make_step(const StepSetting& setting, Grain grain, bool queue_all = false);

}  // namespace hdpsim
