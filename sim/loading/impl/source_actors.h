#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/duration_sum.h"
#include "sim/base/random.h"
#include "sim/loading/loader_use.h"
#include "sim/loading/loading_spec.h"

namespace hdpsim {

/// The loaders of all sources during a run. A source with n loaders of W processes works at the rate n W: each loader
/// has a part of the source's files, so that a batch waits for the last of them, and while one is replaced the source
/// completes nothing.
class SourceActors {
 public:
  /// `spec` must outlive it.
  explicit SourceActors(const LoadingSpec& spec);

  /// From now on loaders die.
  void start(DurationSum at);
  /// When all sources have their samples of a batch, which they may begin at `from`. The calls are in the order of the
  /// batches, and each comes after begins() of all steps that begin until then.
  DurationSum prepare(DurationSum from, const LoadingJob& batch, bool is_rehearsal);
  /// A step begins: loaders die that are stated to, and numbers of loaders follow the mix.
  void begins(DurationSum at, const LoadingJob& batch, Duration time);

  /// "web 17", the source that was ready last.
  [[nodiscard]] std::string latest() const { return name_of(latest_); }
  [[nodiscard]] std::int64_t loaders() const { return loaders_; }
  /// What loaders, with their shadows, hold besides samples.
  [[nodiscard]] Bytes state() const { return state_; }
  /// What happened since the last call; times count from start().
  [[nodiscard]] std::vector<LoaderEvent> take_events() { return std::move(events_); }

 private:
  struct Change {
    DurationSum at;
    std::int64_t loaders = 0;
  };
  struct Missing {
    std::int64_t loader = 0;  ///< One of its shadows ...
    DurationSum until;        ///< ... is not ready before this.
  };
  struct Source {
    std::size_t entry = 0;    ///< Of the study's list.
    std::int64_t number = 0;  ///< Within the entry.
    std::int64_t loaders = 1;
    std::int64_t working = 1;
    DurationSum free{};
    DurationSum blocked{};                     ///< Until then it prepares nothing.
    std::optional<Change> change{};            ///< Loaders that are to work.
    std::vector<DurationSum> stated_deaths{};  ///< Of loader 0, in order.
    std::optional<DurationSum> next_death{};
    std::vector<Missing> missing{};
    double since_snapshot_s = 0;  ///< Process seconds of the batches since then.
    std::int64_t unneeded_steps = 0;
    std::optional<RandomStream> random{};
  };
  /// A batch of a source while it is prepared.
  struct Preparing {
    DurationSum at;
    double work_s = 0;  ///< Process seconds, all ...
    double left_s = 0;  ///< ... and what is left.
    std::int64_t step = 0;
  };

  [[nodiscard]] std::string name_of(std::size_t source) const;
  [[nodiscard]] double processes_of(const Source& source) const;
  [[nodiscard]] double cost_of(std::size_t entry, double samples, double tokens) const;
  [[nodiscard]] static std::optional<DurationSum> next_event(const Source& source);
  void finish(std::size_t index, Preparing& batch);
  void happen(std::size_t index, DurationSum at, const Preparing& batch);
  void die(std::size_t index, std::int64_t loader, DurationSum at, const Preparing& batch);
  void draw_death(Source& source, DurationSum from);
  void move_window(std::int64_t step);
  void scale(std::size_t index, double need, DurationSum at, std::int64_t step);
  void tell(LoaderEvent::Kind kind, std::size_t source, DurationSum at, std::int64_t step, Duration pause);

  const LoadingSpec& spec_;
  std::vector<Source> sources_;
  std::vector<std::size_t> first_;  // source of each entry
  std::size_t latest_ = 0;
  std::int64_t loaders_ = 0;
  Bytes state_;
  DurationSum origin_;
  std::vector<LoaderEvent> events_;
  std::vector<bool> stated_done_;

  // Means over the window of the autoscaling.
  std::vector<double> shares_;                // by entry, summed
  std::int64_t from_step_ = 0, to_step_ = 0;  // [from, to) are in the sums
  std::int64_t seen_ = 0;
  double mean_time_s_ = 0, mean_samples_ = 0, mean_tokens_ = 0;
};

/// What the loaders of one source hold besides samples.
[[nodiscard]] Bytes loader_state(const LoadingSpec& spec, const SourceSpec& source, std::int64_t loaders);

}  // namespace hdpsim
