#include "sim/study/runner.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "sim/study/step.h"

namespace hdpsim {
namespace {

/// The world of the point at which a thread works: made when the point needs another one than the point before.
class ThreadWorld {
 public:
  using Cover = std::function<void(const PointSpec&, const Coverage&)>;
  explicit ThreadWorld(Cover cover) : cover_(std::move(cover)) {}

  World& at(const StudyPoint& point) {
    if (world_ == nullptr || point_->world != point.world) {
      leave();
      world_ = point.make_world();
      point_ = &point;
    }
    return *world_;
  }

  /// Points that share a world share a profile.
  void leave() {
    if (world_ != nullptr) cover_(point_->spec, world_->coverage());
    world_.reset();
  }

 private:
  Cover cover_;
  std::unique_ptr<World> world_;
  const StudyPoint* point_ = nullptr;  // for which the world was made
};

void add_bytes(const std::vector<Bytes>& more, std::vector<Bytes>& sum) {
  sum.resize(more.size());
  for (std::size_t link = 0; link < sum.size(); ++link) sum[link] += more[link];
}

/// One run while its steps are simulated, in whatever order.
class RunInProgress {
 public:
  RunInProgress(std::size_t point, std::size_t plan, std::int64_t steps) : point_(point), plan_(plan), left_(steps) {
    result_.steps.resize(static_cast<std::size_t>(steps));
  }

  [[nodiscard]] std::size_t point() const { return point_; }
  [[nodiscard]] std::size_t plan() const { return plan_; }

  /// True when it was the last one. Sums are exact, so that the order of the steps does not matter.
  bool add(SimulatedStep& step, const PointSpec& spec, const NetworkModel& network) {
    ranks_.resize(step.ranks.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].add(step.ranks[rank]);
    add_bytes(step.links.main, links_.main);
    add_bytes(step.links.others, links_.others);
    time_ += step.result.time;
    keep_fullest(step);
    const auto index = static_cast<std::size_t>(step.result.step);
    result_.steps.at(index) = step.result;
    if (--left_ > 0) return false;
    if (spec.loading) wait_for_data(*spec.loading);
    result_.ranks.reserve(ranks_.size());
    for (const BreakdownMean& rank : ranks_) result_.ranks.push_back(rank.mean());
    ranks_ = {};
    result_.links = busiest_links(links_, time_, network, reported_links);
    links_ = {};
    return true;
  }

  void restore(RunResult&& result) { result_ = std::move(result); }
  [[nodiscard]] const RunResult& result() const { return result_; }
  [[nodiscard]] RunResult take() { return std::move(result_); }

 private:
  static constexpr std::size_t reported_links = 64;

  // Only here all steps are known: how long one waits depends on those before it.
  void wait_for_data(const LoadingSpec& loading) {
    std::vector<LoadedStep> steps;
    steps.reserve(result_.steps.size());
    for (const StepResult& step : result_.steps) steps.push_back({step.loading, step.time});
    const std::vector<Duration> waits = data_waits(loading, steps);
    for (std::size_t i = 0; i < waits.size(); ++i) {
      add_data_wait(waits[i], result_.steps[i]);
      time_ += waits[i];
      for (BreakdownMean& rank : ranks_) rank.extend(Activity::data_wait, waits[i]);
    }
  }

  // Of the first step among several that are as full, in whatever order they come.
  void keep_fullest(SimulatedStep& step) {
    const std::pair candidate(step.result.memory.device, -step.result.step);
    if (fullest_ && candidate < *fullest_) return;
    fullest_ = candidate;
    result_.memory = {step.result.step, std::move(step.memory)};
  }

  std::size_t point_;
  std::size_t plan_;
  std::int64_t left_;
  std::vector<BreakdownMean> ranks_;
  LinkBytes links_;
  Duration time_;
  std::optional<std::pair<Bytes, std::int64_t>> fullest_;  // its device, and minus its number
  RunResult result_;
};

struct Task {
  std::size_t run = 0;
  std::int64_t step = 0;
};

class Runner {
 public:
  Runner(const Study& study, const RunnerOptions& options) : study_(study), options_(options) {
    progress_.runs = study.run_count();
    for (std::size_t point = 0; point < study.points.size(); ++point) {
      for (std::size_t plan = 0; plan < study.plans.size(); ++plan) add_run(point, plan);
    }
    progress_.steps = tasks_.size();
  }

  std::optional<std::vector<Run>> run() {
    const std::size_t threads = std::clamp<std::size_t>(options_.jobs, 1, std::max<std::size_t>(1, tasks_.size()));
    {
      std::vector<std::jthread> others;
      for (std::size_t i = 1; i < threads; ++i) others.emplace_back([this] { work(); });
      work();
    }
    if (failure_) std::rethrow_exception(failure_);
    if (progress_.steps_done < tasks_.size()) return std::nullopt;
    std::vector<Run> runs;
    runs.reserve(runs_.size());
    for (RunInProgress& run : runs_) runs.push_back({study_.run_info(run.point(), run.plan()), run.take(), {}});
    evaluate(runs, study_.compare_to);
    return runs;
  }

 private:
  void add_run(std::size_t point, std::size_t plan) {
    const std::int64_t steps = study_.points[point].spec.steps;
    RunInProgress& run = runs_.emplace_back(point, plan, steps);
    if (options_.resume && options_.store != nullptr) {
      if (auto kept = options_.store->load(identity_of(run)); kept && std::ssize(kept->steps) == steps) {
        run.restore(std::move(*kept));
        ++progress_.runs_done;
        return;
      }
    }
    for (std::int64_t step = 0; step < steps; ++step) tasks_.push_back({runs_.size() - 1, step});
  }

  std::string identity_of(const RunInProgress& run) const {
    return "hdpsim: " + options_.version + "\n" + study_.points[run.point()].identity +
           "memory_ranks: " + std::to_string(study_.output.memory_ranks) + "\nplan:\n" +
           to_yaml(study_.plans[run.plan()].entry);
  }

  void work() {
    try {
      ThreadWorld world([this](const PointSpec& point, const Coverage& coverage) {
        const std::lock_guard lock(mutex_);
        options_.cover(point, coverage);
      });
      for (std::size_t next = next_++; next < tasks_.size() && !ended_ && !options_.stop(); next = next_++) {
        simulate(tasks_[next], world);
      }
      world.leave();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      ended_ = true;
    }
  }

  void simulate(const Task& task, ThreadWorld& world) {
    RunInProgress& run = runs_[task.run];
    const StudyPoint& point = study_.points[run.point()];
    World& simulated = world.at(point);
    SimulatedStep step = simulate_step(point, run.plan(), task.step, simulated, study_.output.memory_ranks);
    const std::lock_guard lock(mutex_);
    const bool finished = run.add(step, point.spec, *simulated.machine().network);
    if (finished && options_.store != nullptr) options_.store->save(identity_of(run), run.result());
    ++progress_.steps_done;
    progress_.runs_done += finished ? 1 : 0;
    const RunInfo info = finished ? study_.run_info(run.point(), run.plan()) : RunInfo{};
    progress_.finished = finished ? &info : nullptr;
    options_.report(progress_);
    progress_.finished = nullptr;
  }

  const Study& study_;
  const RunnerOptions& options_;
  std::vector<RunInProgress> runs_;
  std::vector<Task> tasks_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> ended_ = false;
  std::mutex mutex_;  // guards what follows and the runs
  Progress progress_;
  std::exception_ptr failure_;
};

}  // namespace

std::optional<std::vector<Run>> run_study(const Study& study, const RunnerOptions& options) {
  return Runner(study, options).run();
}

}  // namespace hdpsim
