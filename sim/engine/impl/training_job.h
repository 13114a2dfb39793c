#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/impl/pool_traffic.h"
#include "sim/engine/impl/step_run.h"

namespace hdpsim {

/// A job that trains: its step, from the first micro-batch to the end of the optimizer, step after step. A job that has
/// the network to itself ends its steps in closed form, one that shares it in events: there the stages of a pipeline
/// begin each collective together.
class TrainingJob {
 public:
  struct Setting {
    std::string_view name;  ///< For messages.
    const Machine& machine;
    Grain grain = Grain::fluid;
    bool alone = true;       ///< On the network.
    bool queue_all = false;  ///< See make_exact_step.
  };
  /// The network must be idle: how fast the pool's collectives are then is what they are slowed from.
  TrainingJob(const Setting& setting, const Program& first_step, JobPort& port, std::size_t links);

  /// The step before must have ended. The program must live until this one has.
  void begin_step(const Program& program);
  void handle(const Event& event);
  void rate_changed(std::uint32_t key);
  [[nodiscard]] bool step_ended() const { return phase_ == Phase::ended; }
  /// No event of the job is left. Ends the step of a job alone; for others it is a deadlock, and a CheckFailure.
  void run_out();

  /// Of the step that has ended.
  [[nodiscard]] Duration step_time() const { return timeline_.step_time; }
  /// The same with the bytes of the rings of all steps. Call once, at the end.
  [[nodiscard]] Timeline take_timeline();
  /// What the job sent until now, rings and collectives: of what is under way, the part behind it. Call once, at the
  /// end.
  [[nodiscard]] std::vector<Bytes> all_bytes();

 private:
  enum class Phase { micro_batches, reduction, optimizer, all_gather, overhead, ended };
  static constexpr std::uint32_t own_actor = JobQueue::most_actors - 1;  ///< Of the end of the step.
  static constexpr std::uint32_t phase_ended = 0;

  void next_phase();
  void wait(Duration time);
  void begin_collective(PoolTraffic& collective);
  void end_collective(const PoolTraffic& collective);
  void end_step(std::optional<Duration> sync);
  [[nodiscard]] PoolTraffic* running_collective();

  Setting setting_;
  JobPort& port_;
  CollectivePlan reduction_flows_;
  CollectivePlan all_gather_flows_;
  std::unique_ptr<PoolTraffic> reduction_;  ///< Of gradients; nothing if alone.
  std::unique_ptr<PoolTraffic> all_gather_;
  std::vector<Bytes> ring_bytes_;        ///< By LinkId.
  std::vector<Bytes> collective_bytes_;  ///< By LinkId; nothing if alone.

  Phase phase_ = Phase::ended;
  std::unique_ptr<StepRun> micro_batches_;
  Instant step_began_;
  Instant sync_began_;
  Duration sync_;
  Timeline timeline_;
};

}  // namespace hdpsim
