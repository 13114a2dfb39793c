#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/impl/pool_traffic.h"
#include "sim/engine/impl/step_run.h"

namespace hdpsim {

/// A training job, which runs step after step. If it has the network to itself, the end of each step (gradient
/// reduction, optimizer, parameter all-gather, fixed overhead) is computed in closed form. If it shares the network,
/// the end of the step is simulated with events, and all pipeline stages begin each collective together.
class TrainingJob {
 public:
  struct Setting {
    std::string_view name;  ///< The job's name in error messages.
    const Machine& machine;
    Grain grain = Grain::fluid;
    bool alone = true;           ///< The job has the network to itself.
    bool queue_all = false;      ///< See make_exact_step.
    PassForms* forms = nullptr;  ///< See StepSetting.
  };
  /// The network must be idle: the slowdown of data-parallel collectives is relative to their pace on the idle network.
  TrainingJob(const Setting& setting, const Program& first_step, JobPort& port, std::size_t links);

  /// The previous step must have ended (checked). The program must live until the new step has ended.
  void begin_step(const Program& program);
  /// The same for a further update of the last step (sim/plan/updates.h), which finds its connections set up.
  void begin_update(const Program& program);
  void handle(const Event& event);
  void rate_changed(std::uint32_t key);
  [[nodiscard]] bool step_ended() const { return phase_ == Phase::ended; }
  /// Called when no event of the job is left. This ends the step of a job that has the network to itself; otherwise it
  /// is a deadlock and throws a CheckFailure.
  void run_out();

  /// The time of the step that has ended.
  [[nodiscard]] Duration step_time() const { return timeline_.step_time; }
  /// When it began, on a clock that a job with the network to itself does not move on to the ends of its steps.
  [[nodiscard]] Instant step_began() const { return step_began_; }
  /// The timeline of the step that has ended, without what was sent. Call once a step.
  [[nodiscard]] Timeline take_timeline() { return std::move(timeline_); }
  /// What the job has sent so far: rings, stage messages and collectives, which count as far as they have been sent.
  /// Call once, at the end.
  [[nodiscard]] LinkTraffic all_traffic();

 private:
  [[nodiscard]] LinkTraffic take_traffic();
  /// `overlapped`: collectives that overlap with the last passes end.
  enum class Phase { micro_batches, overlapped, reduction, optimizer, all_gather, overhead, ended };
  static constexpr std::uint32_t own_actor = JobQueue::most_actors - 1;  ///< Actor of the events of the step's end.
  static constexpr std::uint32_t phase_ended = 0;

  void next_phase();
  void wait(Duration time);
  void begin_collective(PoolTraffic& collective);
  void end_collective(const PoolTraffic& collective);
  void end_step(std::optional<Duration> sync);
  /// Adds what the pool sends in a phase, reduction or all_gather, of which `share` has been sent.
  void count_collectives(Phase phase, double share);
  [[nodiscard]] PoolTraffic* running_collective();

  Setting setting_;
  JobPort& port_;
  CollectivePlan reduction_flows_;
  CollectivePlan all_gather_flows_;
  std::unique_ptr<PoolTraffic> reduction_;  ///< Reduction of gradients; null if the job is alone.
  std::unique_ptr<PoolTraffic> all_gather_;
  LinkTraffic sent_;
  TrafficCount collectives_;

  std::optional<ConnectionSetUp> connections_;  ///< Of this step.
  Phase phase_ = Phase::ended;
  std::unique_ptr<StepRun> micro_batches_;
  Instant step_began_;
  Instant sync_began_;
  Duration sync_;
  Timeline timeline_;
};

}  // namespace hdpsim
