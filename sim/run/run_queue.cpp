#include "sim/run/run_queue.h"

#include <chrono>
#include <utility>

#include "sim/base/duration_sum.h"

namespace hdpsim {
namespace {

// How often threads that wait for a step ask whether to stop.
constexpr auto stop_interval = std::chrono::milliseconds(100);

}  // namespace

/// One run while its steps are simulated, in whatever order.
class RunQueue::RunInProgress {
 public:
  explicit RunInProgress(std::int64_t steps) : left_(steps) { result_.steps.resize(static_cast<std::size_t>(steps)); }

  /// Steps that have not come back.
  [[nodiscard]] std::int64_t left() const { return left_; }
  [[nodiscard]] bool is_refused() const { return result_.refusal.has_value(); }
  /// No further step of a refused run is begun; those that were, may be refused at an earlier step.
  [[nodiscard]] bool is_done() const { return is_refused() ? under_way_ == 0 : left_ == 0; }

  void begin_step() { ++under_way_; }

  void refuse(const Refusal& refusal) {
    come_back();
    if (!is_refused() || refusal.step < result_.refusal->step) result_.refusal = refusal;
  }

  /// Adds a step. Sums are exact, so that the order of the steps does not matter.
  void add(SimulatedStep& step, const Coverage& coverage, const StudyPoint& point, const NetworkModel& network) {
    ranks_.resize(step.ranks.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].add(step.ranks[rank]);
    links_.main += step.links.main;
    links_.others += step.links.others;
    coverage_.add(coverage);
    time_ += step.result.time;
    keep_fullest(step);
    const auto index = static_cast<std::size_t>(step.result.step);
    result_.steps.at(index) = step.result;
    come_back();
    if (left_ > 0) return;
    if (point.spec.loading) wait_for_data(point);
    result_.ranks.reserve(ranks_.size());
    for (const BreakdownMean& rank : ranks_) result_.ranks.push_back(rank.mean());
    result_.links = busiest_links(links_, time_.seconds(), network, reported_links);
  }

  /// The run that is done. What a refused one has simulated depends on the order of steps, so that it is left out.
  [[nodiscard]] FinishedRun take(std::size_t number) {
    if (!is_refused()) return {number, std::move(result_), coverage_};
    RunResult refused;
    refused.refusal = result_.refusal;
    return {number, std::move(refused), {}};
  }

 private:
  static constexpr std::size_t reported_links = 64;

  void come_back() {
    --under_way_;
    --left_;
  }

  // Computed at the end, because how long a step waits depends on those before it.
  void wait_for_data(const StudyPoint& point) {
    DataWaits added = add_data_waits(point, result_.steps);
    for (const Duration wait : added.waits) {
      time_ += wait;
      for (BreakdownMean& rank : ranks_) rank.extend(Activity::data_wait, wait);
    }
    const Bytes growth = added.host_growth.at(static_cast<std::size_t>(result_.memory.step));
    for (RankMemory& rank : result_.memory.ranks) {
      for (MemorySample& sample : rank.samples) sample.host += growth;
    }
    result_.loader_events = std::move(added.events);
  }

  // Keeps the first step among several that are equally full, in whatever order they come.
  void keep_fullest(SimulatedStep& step) {
    const std::pair candidate(step.result.memory.device, -step.result.step);
    if (fullest_ && candidate < *fullest_) return;
    fullest_ = candidate;
    result_.memory = {step.result.step, std::move(step.memory)};
  }

  std::int64_t left_;
  std::int64_t under_way_ = 0;
  std::vector<BreakdownMean> ranks_;
  JobsTraffic links_;
  DurationSum time_;
  std::optional<std::pair<Bytes, std::int64_t>> fullest_;  // device memory, and minus the number of the step
  RunResult result_;
  Coverage coverage_;
};

RunQueue::RunQueue(const Study& study, std::function<bool()> stop, Tell tell)
    : study_(study), stop_(std::move(stop)), tell_(std::move(tell)), states_(study.run_count(), State::unknown) {}

RunQueue::~RunQueue() = default;

void RunQueue::put(std::size_t run) {
  const std::lock_guard lock(mutex_);
  if (states_.at(run) != State::unknown) return;
  states_[run] = State::waiting;
  ++unfinished_;
  waiting_.push_back(run);
  changed_.notify_all();
}

void RunQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void RunQueue::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void RunQueue::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::move(error);
  ended_ = true;
  changed_.notify_all();
}

void RunQueue::rethrow() const {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

std::optional<StepTask> RunQueue::next_step() {
  std::unique_lock lock(mutex_);
  while (!over()) {
    if (stop_()) {
      ended_ = true;
      changed_.notify_all();
    } else if (has_next_step()) {
      open_.at(next_.run)->begin_step();
      return StepTask{next_.run, next_.step++};
    } else if (!open_next()) {
      changed_.wait_for(lock, stop_interval);
    }
  }
  return std::nullopt;
}

bool RunQueue::has_next_step() const {
  const auto open = open_.find(next_.run);
  return open != open_.end() && !open->second->is_refused() && next_.step < steps_of(next_.run);
}

// Opens the next run; true if there was one.
bool RunQueue::open_next() {
  std::optional<std::size_t> run = pop(kept_);
  if (!run) run = pop(waiting_);
  if (!run) return false;
  open_.emplace(*run, std::make_unique<RunInProgress>(steps_of(*run)));
  next_ = {*run, 0};
  return true;
}

// Skips runs that were finished while they waited, as by a process that was given up too early.
std::optional<std::size_t> RunQueue::pop(std::deque<std::size_t>& runs) {
  while (!runs.empty()) {
    const std::size_t run = runs.front();
    runs.pop_front();
    if (states_[run] != State::waiting) continue;
    states_[run] = State::taken;
    return run;
  }
  return std::nullopt;
}

void RunQueue::add(const StepTask& task, SimulatedStep step, const Coverage& coverage, const NetworkModel& network) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(task.run);
  if (found == open_.end()) return;  // finished by another process meanwhile
  RunInProgress& run = *found->second;
  run.add(step, coverage, point_of(task.run), network);
  after_step(task, run);
}

void RunQueue::refuse(const StepTask& task, const Refusal& refusal) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(task.run);
  if (found == open_.end()) return;  // finished by another process meanwhile
  found->second->refuse(refusal);
  after_step(task, *found->second);
}

// The steps of a refused run that nobody has begun count as simulated.
void RunQueue::after_step(const StepTask& task, RunInProgress& run) {
  if (!run.is_done()) return tell_(1, nullptr);
  tell_finished(run.take(task.run), 1 + run.left());
}

std::optional<std::size_t> RunQueue::next_run() {
  const std::lock_guard lock(mutex_);
  return ended_ ? std::nullopt : pop(waiting_);
}

void RunQueue::finish(FinishedRun finished) {
  const std::lock_guard lock(mutex_);
  const State state = states_.at(finished.run);
  if (state == State::unknown || state == State::done) return;
  const auto open = open_.find(finished.run);
  const std::int64_t steps = open == open_.end() ? steps_of(finished.run) : open->second->left();
  tell_finished(std::move(finished), steps);
}

void RunQueue::tell_finished(FinishedRun finished, std::int64_t steps) {
  states_[finished.run] = State::done;
  open_.erase(finished.run);
  tell_(steps, &finished);
  --unfinished_;
  changed_.notify_all();
}

void RunQueue::give_back(std::size_t run) {
  const std::lock_guard lock(mutex_);
  if (states_.at(run) != State::taken) return;
  states_[run] = State::waiting;
  waiting_.push_front(run);
  changed_.notify_all();
}

void RunQueue::keep(std::size_t run) {
  const std::lock_guard lock(mutex_);
  if (states_.at(run) != State::taken) return;
  states_[run] = State::waiting;
  kept_.push_back(run);
  changed_.notify_all();
}

std::vector<std::size_t> RunQueue::unfinished() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> runs;
  for (std::size_t run = 0; run < states_.size(); ++run) {
    if (states_[run] == State::waiting || states_[run] == State::taken) runs.push_back(run);
  }
  return runs;
}

std::size_t RunQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

bool RunQueue::is_over() const {
  const std::lock_guard lock(mutex_);
  return over();
}

bool RunQueue::is_complete() const {
  const std::lock_guard lock(mutex_);
  return closed_ && unfinished_ == 0;
}

std::int64_t RunQueue::steps_of(std::size_t run) const {
  return point_of(run).spec.steps;
}

const StudyPoint& RunQueue::point_of(std::size_t run) const {
  return study_.points.at(run / study_.plans.size());
}

}  // namespace hdpsim
