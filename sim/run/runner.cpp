#include "sim/run/runner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/run/joined_threads.h"
#include "sim/run/refusals.h"

namespace hdpsim {
namespace {

std::vector<const Run*> pointers_to(const std::vector<Run>& runs) {
  std::vector<const Run*> pointers;
  pointers.reserve(runs.size());
  for (const Run& run : runs) pointers.push_back(&run);
  return pointers;
}

class Runner {
 public:
  Runner(const Study& study, const RunnerOptions& options)
      : study_(study),
        options_(options),
        results_(study.run_count()),
        queue_(study, options.stop, [this](auto... told) { tell(told...); }) {
    progress_.runs = study.run_count();
    for (std::size_t run = 0; run < results_.size(); ++run) add_run(run);
    queue_.close();
  }

  std::optional<std::vector<Run>> run() {
    const std::size_t threads = std::clamp<std::size_t>(options_.jobs, 1, std::max<std::size_t>(1, progress_.steps));
    {
      JoinedThreads beside;
      if (options_.helpers != nullptr) beside.begin([this] { options_.helpers->work(queue_); });
      make_thread_workers(study_, {threads, options_.known, options_.watcher})->work(queue_);
    }
    queue_.rethrow();
    if (!queue_.is_complete()) return std::nullopt;
    std::vector<Run> runs;
    runs.reserve(results_.size());
    for (std::size_t run = 0; run < results_.size(); ++run) {
      runs.push_back({info_of(run), std::move(results_[run]), {}});
    }
    require_one_that_ran(pointers_to(runs));
    evaluate(runs, study_.compare_to);
    return runs;
  }

 private:
  void add_run(std::size_t run) {
    const std::int64_t steps = spec_of(run).steps;
    auto kept = kept_result(run);
    if (kept && (kept->refusal || std::ssize(kept->steps) == steps)) {
      results_[run] = std::move(*kept);
      ++progress_.runs_done;
      return;
    }
    progress_.steps += static_cast<std::size_t>(steps);
    queue_.put(run);
  }

  [[nodiscard]] std::optional<RunResult> kept_result(std::size_t run) const {
    if (options_.journal == nullptr) return std::nullopt;
    const auto text = options_.journal->kept(run_identity(study_, run, options_.version));
    return text ? run_of_text(*text) : std::nullopt;
  }

  // The queue calls this from one thread at a time.
  void tell(std::int64_t steps, FinishedRun* finished) {
    std::optional<RunInfo> info;
    if (finished != nullptr) {
      const std::size_t run = finished->run;
      if (options_.journal != nullptr) {
        options_.journal->add(run_identity(study_, run, options_.version), run_text(finished->result));
      }
      options_.cover(spec_of(run).profile, finished->coverage);
      results_[run] = std::move(finished->result);
      info = info_of(run);
    }
    progress_.steps_done += static_cast<std::size_t>(steps);
    progress_.runs_done += info ? 1 : 0;
    progress_.finished = info ? &*info : nullptr;
    options_.report(progress_);
    progress_.finished = nullptr;
  }

  [[nodiscard]] const PointSpec& spec_of(std::size_t run) const {
    return study_.points[run / study_.plans.size()].spec;
  }
  [[nodiscard]] RunInfo info_of(std::size_t run) const {
    return study_.run_info(run / study_.plans.size(), run % study_.plans.size());
  }

  const Study& study_;
  const RunnerOptions& options_;
  std::vector<RunResult> results_;
  Progress progress_;
  RunQueue queue_;
};

}  // namespace

std::optional<std::vector<Run>> run_study(const Study& study, const RunnerOptions& options) {
  return Runner(study, options).run();
}

}  // namespace hdpsim
