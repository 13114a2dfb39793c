#include "sim/run/advice.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sim/analysis/memory_verdict.h"
#include "sim/run/ordered_work.h"
#include "sim/run/step.h"
#include "sim/study/study_changes.h"

namespace hdpsim {
namespace {

constexpr double least_advised_gain = 0.005;  // share of the time of a token
constexpr std::int64_t cheap_workers = 1024;
constexpr std::int64_t search_workers = 4;  // whose simulation takes as long as that of one whose plan is searched for
constexpr double error_of_quick_plans = 0.06;  // by how much more they may be longer than what a full search finds

/// How good a run is: what does not fit is worse than all that fits, by what it needs of what there is.
struct Score {
  bool fits = false;
  double cost = 0;  ///< Seconds of a token; of what does not fit the share of the memory that it needs.

  [[nodiscard]] bool is_better_than(const Score& other) const {
    if (fits != other.fits) return fits;
    return cost < other.cost * (1 - least_advised_gain);
  }
};

/// A step of the changed study.
struct Trial {
  Duration time;
  std::int64_t tokens = 0;
  Bytes device;
  Score score;
};

double share_of(Bytes need, Bytes have) {
  return have > Bytes{} ? need.gigabytes() / have.gigabytes() : need.gigabytes();
}

Trial trial_of(const StepResult& step, const PointSpec& spec) {
  const Bytes device = spec.cluster.least_device_memory();
  const Bytes host = spec.cluster.least_host_share();
  const bool fits = fits_in(step, spec);
  const double need = std::max({share_of(step.memory.device, device), share_of(step.memory.host, host),
                                static_cast<double>(step.tokens_held) / static_cast<double>(spec.capacity)});
  const double pace = step.time.seconds() / static_cast<double>(std::max<std::int64_t>(1, step.tokens));
  return {step.time, step.tokens, step.memory.device, {fits, fits ? pace : need}};
}

bool changes_tokens(const std::vector<StudyChange>& changes) {
  return !changes.empty() && changes.front().subject == tokens_subject;
}

// The seconds of a token over as many steps as are one where a step has more tokens: a trace has the same sequences
// there.
double pace_of_steps(const RunResult& result, std::int64_t first) {
  double seconds = 0;
  double tokens = 0;
  const std::int64_t end = std::min<std::int64_t>(first + tokens_times, std::ssize(result.steps));
  for (std::int64_t step = first; step < end; ++step) {
    seconds += result.steps[static_cast<std::size_t>(step)].time.seconds();
    tokens += static_cast<double>(result.steps[static_cast<std::size_t>(step)].tokens);
  }
  return tokens > 0 ? seconds / tokens : seconds;
}

// The step that cannot run; of a run that can, `step`.
std::int64_t deciding_step(const Run& run, std::int64_t step) {
  if (run.is_refused()) return run.result.refusal->step;
  if (run.metrics.fits) return step;
  const auto is_fuller = [](const StepResult& a, const StepResult& b) {
    return std::pair(a.tokens_held, a.memory.device) < std::pair(b.tokens_held, b.memory.device);
  };
  return std::max_element(run.result.steps.begin(), run.result.steps.end(), is_fuller)->step;
}

/// Tries changes of the study of one run.
class Trials {
 public:
  Trials(const Study& study, const std::vector<Run>& runs, std::size_t run, std::int64_t step,
         const AdviceOptions& options)
      : study_(study_of_run(study, run / study.plans.size(), run % study.plans.size())),
        changes_(possible_changes(study_, study.points[run / study.plans.size()].spec, options.catalog,
                                  runs[run].metrics.tokens_held)),
        quicker_(quicker_search(study_)),
        run_(runs[run]),
        step_(deciding_step(runs[run], step)),
        options_(options) {}

  std::vector<Advice> run() {
    most_ = std::ssize(changes_) * static_cast<std::int64_t>(options_.most_together);
    Catalog catalog = options_.catalog;
    base_ = compared({}, catalog);
    std::vector<Candidate> better = better_of(with_one_more({}), &Trials::compared);
    std::vector<Candidate> together = best_together(best_of_each(better, subject_of));
    if (quicker_) {
      base_ = planned_in_full({}, catalog);
      better = better_of(changes_of(nearly_best(std::move(better))), &Trials::planned_in_full);
      together = better_of(changes_of(together), &Trials::planned_in_full);
    }
    std::vector<Candidate> told = best_of_each(std::move(better), subject_of);
    if (!together.empty() && (told.empty() || together.front().trial.score.is_better_than(told.front().trial.score))) {
      told.push_back(std::move(together.front()));
    }
    std::vector<Advice> all;
    for (const Candidate& candidate : told) tell(candidate, all);
    // What lets a plan run at all is told alone first.
    if (base_ && base_->score.fits) {
      std::stable_sort(all.begin(), all.end(), [](const Advice& a, const Advice& b) { return *a.gain > *b.gain; });
    }
    return all;
  }

 private:
  using Changes = std::vector<StudyChange>;
  struct Candidate {
    Changes changes;
    Trial trial;
  };
  using TrialOf = std::optional<Trial> (Trials::*)(const Changes& changes, Catalog& catalog) const;

  static std::string_view subject_of(const Candidate& candidate) { return candidate.changes.back().subject; }

  // As the search for the best changes compares them.
  [[nodiscard]] std::optional<Trial> compared(const Changes& changes, Catalog& catalog) const {
    Changes all = changes;
    if (quicker_) all.push_back(*quicker_);
    return tried(all, step_of(changes), catalog);
  }

  // As the user would see them.
  [[nodiscard]] std::optional<Trial> planned_in_full(const Changes& changes, Catalog& catalog) const {
    return tried(changes, step_of(changes), catalog);
  }

  // Empty if the study is refused, or its plan.
  [[nodiscard]] std::optional<Trial> tried(const Changes& changes, std::int64_t step, Catalog& catalog) const {
    std::optional<Study> study = changed_study(study_, changes, catalog);
    if (!study) return std::nullopt;
    StudyPoint& point = study->points.front();
    point.spec.uncertainty.reset();
    if (point.spec.grain == Grain::exact) point.spec.grain = Grain::fluid;
    try {
      return trial_of(simulate_step(point, 0, step, *point.make_world()).result, point.spec);
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  [[nodiscard]] std::vector<Changes> with_one_more(const Changes& before) const {
    std::vector<Changes> all;
    for (const StudyChange& change : changes_) {
      Changes changes = before;
      changes.push_back(change);
      if (is_one_of_each_subject(changes)) all.push_back(std::move(changes));
    }
    return all;
  }

  // Those that are better than `before`, or than the study as it is. None if it was stopped.
  [[nodiscard]] std::vector<Candidate> better_of(const std::vector<Changes>& all, TrialOf trial_of,
                                                 const Score* before = nullptr) const {
    std::vector<Candidate> better;
    const auto make_worker = [&] {
      return [&, catalog = options_.catalog](std::int64_t number) mutable {
        return (this->*trial_of)(all[static_cast<std::size_t>(number)], catalog);
      };
    };
    const auto keep = [&](std::int64_t number, const std::optional<Trial>& trial) {
      options_.report({run_.info.plan, ++tried_, most_});
      const Changes& changes = all[static_cast<std::size_t>(number)];
      const auto old = before == nullptr ? as_it_is(changes) : std::optional(*before);
      if (trial && (!old || trial->score.is_better_than(*old))) better.push_back({changes, *trial});
    };
    const OrderedWork work{.end = std::ssize(all), .jobs = options_.jobs, .stop = options_.stop};
    if (!run_in_order(work, make_worker, keep)) return {};
    return better;
  }

  // Of each subject those that may turn out the best once their plans are searched for in full.
  [[nodiscard]] static std::vector<Candidate> nearly_best(std::vector<Candidate> all) {
    const std::vector<Candidate> best = best_of_each(all, subject_of);
    std::erase_if(all, [&](const Candidate& each) {
      const auto same = [&](const Candidate& other) { return subject_of(other) == subject_of(each); };
      const Score& least = std::find_if(best.begin(), best.end(), same)->trial.score;
      return each.trial.score.fits != least.fits || each.trial.score.cost > least.cost * (1 + error_of_quick_plans);
    });
    return all;
  }

  [[nodiscard]] static std::vector<Changes> changes_of(const std::vector<Candidate>& candidates) {
    std::vector<Changes> all;
    std::transform(candidates.begin(), candidates.end(), std::back_inserter(all),
                   [](const Candidate& candidate) { return candidate.changes; });
    return all;
  }

  // The step that trains what the told one does.
  [[nodiscard]] std::int64_t step_of(const std::vector<StudyChange>& changes) const {
    return changes_tokens(changes) ? step_ / tokens_times : step_;
  }

  // What the changed study is compared with; empty if it is refused as it is.
  [[nodiscard]] std::optional<Score> as_it_is(const Changes& changes) const {
    if (!base_) return std::nullopt;
    if (!base_->score.fits || !changes_tokens(changes)) return base_->score;
    return Score{true, pace_of_steps(run_.result, step_of(changes) * tokens_times)};
  }

  [[nodiscard]] static bool is_one_of_each_subject(const Changes& changes) {
    std::set<std::string_view> subjects;
    for (const StudyChange& change : changes) subjects.insert(change.subject);
    // A step of other tokens is compared with other steps.
    return subjects.size() == changes.size() && (changes.size() == 1 || !subjects.contains(tokens_subject));
  }

  // The best first, one of each kind.
  template <class KindOf>
  [[nodiscard]] static std::vector<Candidate> best_of_each(std::vector<Candidate> all, const KindOf& kind_of) {
    std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(!a.trial.score.fits, a.trial.score.cost) < std::pair(!b.trial.score.fits, b.trial.score.cost);
    });
    std::set<std::invoke_result_t<KindOf, const Candidate&>> seen;
    std::erase_if(all, [&](const Candidate& each) { return !seen.insert(kind_of(each)).second; });
    return all;
  }

  // The best change and, as long as one helps, on top of it another: a beam search. Empty: none goes with another.
  [[nodiscard]] std::vector<Candidate> best_together(const std::vector<Candidate>& alone) const {
    std::vector<Candidate> beam;
    std::copy_if(alone.begin(), alone.end(), std::back_inserter(beam),
                 [](const Candidate& each) { return !changes_tokens(each.changes); });
    Candidate best;
    for (std::size_t together = 1; !beam.empty(); ++together) {
      if (best.changes.empty() || beam.front().trial.score.is_better_than(best.trial.score)) best = beam.front();
      if (together == options_.most_together) break;
      beam.resize(std::min(beam.size(), options_.beam));
      std::vector<Candidate> next;
      for (const Candidate& candidate : beam) {
        std::vector<Candidate> better = best_of_each(
            better_of(with_one_more(candidate.changes), &Trials::compared, &candidate.trial.score), subject_of);
        std::move(better.begin(), better.end(), std::back_inserter(next));
      }
      beam = best_of_each(std::move(next), [](const Candidate& each) { return assignments_in_order(each.changes); });
    }
    if (best.changes.size() < 2) return {};
    return {std::move(best)};
  }

  // The same changes in another order are no others.
  [[nodiscard]] static std::set<std::string> assignments_in_order(const Changes& changes) {
    std::set<std::string> all;
    for (const StudyChange& change : changes) all.insert(change.assignments.begin(), change.assignments.end());
    return all;
  }

  void tell(const Candidate& candidate, std::vector<Advice>& all) const {
    const Trial& trial = candidate.trial;
    const auto is_same = [&](const Advice& other) {
      return other.step_time == trial.time && other.tokens == trial.tokens && other.device == trial.device;
    };
    if (!trial.score.fits || std::any_of(all.begin(), all.end(), is_same)) return;
    Advice advice{.step_time = trial.time, .tokens = trial.tokens, .pace = trial.score.cost, .device = trial.device};
    const std::optional<Score> old = as_it_is(candidate.changes);
    if (old && old->fits) advice.gain = 1 - trial.score.cost / old->cost;
    for (const StudyChange& change : candidate.changes) {
      advice.changes.insert(advice.changes.end(), change.assignments.begin(), change.assignments.end());
      if (!change.remark.empty()) advice.remarks.push_back(change.remark);
    }
    all.push_back(std::move(advice));
  }

  Value study_;
  Changes changes_;
  std::optional<StudyChange> quicker_;  // with which changes are compared before the best are planned in full
  const Run& run_;
  std::int64_t step_;
  const AdviceOptions& options_;
  std::int64_t most_ = 0;
  mutable std::int64_t tried_ = 0;
  std::optional<Trial> base_;  // as it is, planned as what it is compared with; empty: refused
};

}  // namespace

bool fits_in(const StepResult& step, const PointSpec& spec) {
  const MemoryLimits limits{spec.cluster.least_device_memory(), spec.cluster.least_host_share()};
  return fit_of(step.memory, limits) != MemoryFit::no && step.tokens_held <= spec.capacity;
}

std::vector<Advice> advice_for(const Study& study, const std::vector<Run>& runs, std::size_t run, std::int64_t step,
                               const AdviceOptions& options) {
  return Trials(study, runs, run, step, options).run();
}

bool is_cheap_to_advise(const Study& study, const std::vector<std::size_t>& chosen) {
  const std::size_t plans = study.plans.size();
  std::int64_t workers = 0;
  for (const std::size_t run : chosen) {
    const PointSpec& spec = study.points[run / plans].spec;
    if (!spec.background.empty()) return false;
    const bool is_searched = quicker_search(study_of_run(study, run / plans, run % plans)).has_value();
    workers += spec.mesh.hdp * spec.mesh.pp * (is_searched ? search_workers : 1);
  }
  return workers <= cheap_workers;
}

}  // namespace hdpsim
