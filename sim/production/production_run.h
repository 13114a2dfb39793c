#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/loading/loaded_run.h"
#include "sim/production/incidents.h"

namespace hdpsim {

/// A device of the cluster and how many times longer its kernels take.
struct SlowDevice {
  std::int64_t device = 0;
  double slowdown = 1;
  friend auto operator<=>(const SlowDevice&, const SlowDevice&) = default;
};

/// The devices of a job in one step, each once, by number.
struct DeviceState {
  std::vector<SlowDevice> slow;   ///< As they are, ...
  std::vector<SlowDevice> known;  ///< ... and as policies plan for them.
  friend auto operator<=>(const DeviceState&, const DeviceState&) = default;
};

/// A step as a run of hours sees it.
struct TimedStep {
  Duration time;
  std::array<Duration, activity_count> mean{};  ///< Mean over ranks, by Activity; sums to `time`.
  std::vector<Duration> loading{};              ///< As of StepResult, as is ...
  LoadingJob loading_job{};                     ///< ... this.
  std::int64_t tokens = 0;
  double model_flops = 0;
  Bytes device{};  ///< Memory of the fullest device at its fullest moment, ...
  Bytes host{};    ///< ... and of its share of the host's.
};

/// How a job goes on when it knows of other slow devices than before.
struct Adaptation {
  double moving_s = 0;   ///< Until states are where they are needed.
  std::string layout{};  ///< Of its pipelines, in words; empty: as before.
};

/// The steps of a job in any state of its devices.
class TimedSteps {
 public:
  virtual ~TimedSteps() = default;
  /// How many batches there are; step k trains batch k modulo this.
  [[nodiscard]] virtual std::int64_t batches() const = 0;
  /// Empty if the run is to stop.
  [[nodiscard]] virtual std::optional<TimedStep> step(std::int64_t batch, const DeviceState& state) = 0;
  /// What it takes besides a stop that the job trains as another knowledge of its slow devices says.
  [[nodiscard]] virtual Adaptation adapt(const std::vector<SlowDevice>& /*before*/,
                                         const std::vector<SlowDevice>& /*now*/) {
    return {};
  }
};

/// How long steps wait for their data. All times are in seconds from the beginning of the run.
class DataSupply {
 public:
  virtual ~DataSupply() = default;
  /// How long the step of this number, which is due at `at_s`, waits for its batch.
  [[nodiscard]] virtual Duration wait(double at_s, const TimedStep& step, std::int64_t number) = 0;
  /// The job goes back to a checkpoint: nothing is loaded ahead at this time.
  virtual void begin_again(double at_s) = 0;
  /// What happened to loaders since the last call.
  [[nodiscard]] virtual std::vector<LoaderEvent> take_events() = 0;
};
/// `spec` must outlive the result.
[[nodiscard]] std::unique_ptr<DataSupply> make_data_supply(const LoadingSpec& spec);

inline constexpr double hour_s = 3600;

/// Seconds of a run by what they were spent on.
struct TimeSpent {
  /// Steps that counted, as long as they take on devices that are not slow, by Activity; with waits for data.
  std::array<double, activity_count> steps_s{};
  double stragglers_s = 0;  ///< What these steps took longer because devices were slow.
  double answers_s = 0;     ///< Standing still for new plans or replaced nodes.
  double checkpoints_s = 0;
  double lost_s = 0;  ///< Steps, and checkpoints, that a failure undid.
  double restarts_s = 0;
  [[nodiscard]] double steps_that_count_s() const;  ///< Those as they were, with stragglers.
  [[nodiscard]] double total_s() const;
  /// The share of the time in steps that count.
  [[nodiscard]] double goodput() const { return steps_that_count_s() / total_s(); }
  TimeSpent& operator+=(const TimeSpent& other);
};

enum class ProductionEventKind {
  slow,
  recovered,
  replanned,
  replaced,
  failed,
  checkpoint,
  loader_added,
  loader_removed,
  loader_lost,
  loader_promoted,
};
inline constexpr std::array all_production_events{
    ProductionEventKind::slow,           ProductionEventKind::recovered,      ProductionEventKind::replanned,
    ProductionEventKind::replaced,       ProductionEventKind::failed,         ProductionEventKind::checkpoint,
    ProductionEventKind::loader_added,   ProductionEventKind::loader_removed, ProductionEventKind::loader_lost,
    ProductionEventKind::loader_promoted};
/// "slow", "recovered", ...
[[nodiscard]] std::string_view production_event_name(ProductionEventKind kind);

struct ProductionEvent {
  double at_s = 0;
  ProductionEventKind kind = ProductionEventKind::checkpoint;
  std::int64_t step = 0;  ///< Steps that were trained by then and not undone.
  std::optional<std::int64_t> device{};
  std::optional<std::int64_t> node{};
  double slowdown = 1;          ///< Of a slow device.
  std::int64_t lost_steps = 0;  ///< Whole steps that a failure undid.
  double stopped_s = 0;         ///< How long the job stood still for it, or the source of a loader.
  std::string source{};         ///< Of a loader.
  std::string layout{};         ///< Adaptation::layout.
};

/// A plan's run of hours.
struct ProductionRun {
  TimeSpent spent;
  std::int64_t steps = 0;   ///< That count, ...
  std::int64_t tokens = 0;  ///< ... with their tokens ...
  double model_flops = 0;   ///< ... and useful FLOPs.
  Bytes device;             ///< The most of TimedStep::device and ...
  Bytes host;               ///< ... of TimedStep::host.
  std::int64_t lost_steps = 0;
  std::optional<double> interval_s{};  ///< Between checkpoints; empty without failures.
  std::vector<ProductionEvent> events;

  [[nodiscard]] std::int64_t count(ProductionEventKind kind) const;
  [[nodiscard]] double tokens_per_gpu_hour(std::int64_t gpus) const;
};

/// The time between checkpoints of a job of `nodes` nodes: as stated, or Daly's optimum.
[[nodiscard]] double checkpoint_interval_s(const FailureModel& failures, std::int64_t nodes);

/// A job of hours and what happens to it.
struct ProductionJob {
  const ProductionOptions& options;
  const std::optional<FailureModel>& failures;
  std::int64_t nodes = 1;
  const Incidents& incidents;
};

/// Runs a job step by step for its time; its last step ends then or later.
///
/// * A step takes what `times` says of the devices in the state in which they are when it begins.
/// * A checkpoint is written after the step whose end is nearest to the interval since the last one. A failure stops
///   the job at once, undoes what was done since that checkpoint, and takes the time of a restart, during which further
///   failures begin it anew; a spare takes the node's place, whose slow devices are gone with it.
/// * A slow device of at least the threshold is known after `detect` steps, and so is it that it has recovered; what
///   happens then is Stragglers::answer.
/// * A step waits for its data as `supply` says, which may be null. After a restart nothing is loaded ahead.
///
/// `goes_on(seconds)` is asked after each step, with the time of the run. Empty if it says no, or if `times` stops.
/// O(steps + incidents), each with the devices that are slow at the time.
[[nodiscard]] std::optional<ProductionRun> run_production(
    const ProductionJob& job, TimedSteps& times, DataSupply* supply,
    const std::function<bool(double seconds)>& goes_on = [](double) { return true; });

}  // namespace hdpsim
