#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/duration_sum.h"
#include "sim/loading/loader_use.h"
#include "sim/loading/loading_spec.h"

namespace hdpsim {

class SourceActors;

/// The time of each stage of loading for one batch; a stage works on one batch at a time. SPMD loaders are one stage:
/// read, prepare, plan. Remote ones are three: sources, scheduler, clients. Actors are read, planner, constructors;
/// what their sources and connections take between these depends on the run so far.
[[nodiscard]] std::vector<Duration> loading_stages(const LoadingSpec& spec, const LoadingJob& job);

/// The host memory of one device's share of the loaded batches: those loaded ahead and the one in use. With sources,
/// also what loaders keep open, with as many loaders as at the beginning.
[[nodiscard]] Bytes loading_memory(const LoadingSpec& spec, const LoadingJob& job);

/// One step as loading sees it.
struct LoadedStep {
  std::vector<Duration> stages;  ///< loading_stages()
  Duration time;                 ///< Time of the step, once its data is there.
  LoadingJob job{};
};

/// A run in which every step waits for its batch, step by step. The loader begins batch k when step k - prefetch has
/// begun, or without prefetch when step k - 1 has ended; a batch passes the stages in order. With actors every source
/// is a server of its own: it prepares its samples of a batch after those of the batch before, at the rate of its
/// loaders, and the batch goes on when the last source is done. O(stages + sources) a step.
class LoadedRun {
 public:
  /// `spec` must outlive it.
  explicit LoadedRun(const LoadingSpec& spec);
  LoadedRun(LoadedRun&&) noexcept;
  ~LoadedRun();

  /// A step before the run, which fills the buffers: no loader is added and none dies.
  void rehearse(const LoadedStep& step);
  /// How long the step waits for its batch, and for its plan unless the planner works ahead.
  Duration wait(const LoadedStep& step);
  /// The trainers do nothing for so long after the last step, while loaders go on: a checkpoint, a restart of the job.
  void stand_still(Duration time) { ended_ += time; }

  /// The job goes back to a checkpoint: nothing is loaded ahead, and what its next step needs is loaded from now on.
  void begin_again();

  /// Of the last step.
  [[nodiscard]] const LoaderUse& use() const { return use_; }
  /// What happened to loaders since the last call, in the order in which it was computed.
  [[nodiscard]] std::vector<LoaderEvent> take_events();

 private:
  Duration next(const LoadedStep& step, bool is_rehearsal);
  [[nodiscard]] DurationSum loading_begins() const;
  [[nodiscard]] DurationSum load(const LoadedStep& step, bool is_rehearsal);
  void describe(const LoadedStep& step);

  const LoadingSpec& spec_;
  std::unique_ptr<SourceActors> actors_;  // of that style
  std::vector<DurationSum> free_;         // by stage
  std::deque<DurationSum> begins_;        // of the last steps, as many as are loaded ahead
  DurationSum ended_;                     // the last one
  DurationSum origin_;                    // of the run after all that was rehearsed
  bool has_begun_ = false;
  std::string slowest_;  // what the batch passed last took most of its time in
  LoaderUse use_;
};

/// What loading does to the steps of a run, all by step.
struct LoadedCourse {
  std::vector<Duration> waits;
  std::vector<LoaderUse> use;
  std::vector<LoaderEvent> events;
};

/// The steps are a window of a longer run: they are run once to fill the stages, then again. O(steps x sources).
[[nodiscard]] LoadedCourse loaded_course(const LoadingSpec& spec, const std::vector<LoadedStep>& steps);

}  // namespace hdpsim
