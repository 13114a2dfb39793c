#include "sim/run/best_static.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "sim/base/check.h"
#include "sim/run/ordered_work.h"
#include "sim/run/static_ways.h"
#include "sim/study/sweep.h"

namespace hdpsim {
namespace {

using Ranking = std::vector<JudgedWay>;

/// Questions of points, their answers, and what follows for the runs.
class Comparison {
 public:
  Comparison(const Study& study, std::size_t baseline, Catalog& catalog, const RunnerOptions& options)
      : study_(study), baseline_(baseline), catalog_(catalog), options_(options) {
    options_.helpers = nullptr;
    options_.known = nullptr;
    options_.watcher = nullptr;
    options_.report = [](const Progress&) {};
    options_.cover = [](const std::shared_ptr<const DeviceProfile>&, const Coverage&) {};
  }

  bool run(std::vector<Run>& runs, std::optional<std::size_t> only) {
    Diagnostics none;
    std::vector<SweepPoint> points = expand_sweep(study_.resolved, none);
    for (std::size_t point = 0; point < points.size(); ++point) {
      if (only && point != *only) continue;
      const Run& own = run_at(runs, point, baseline_);
      if (!own.is_refused()) ask(own, std::move(points[point].study));
    }
    if (!judge_all()) return false;
    for (const auto& [point, subject] : asked_) {
      const auto best = best_of(subjects_[subject], run_at(runs, point, baseline_));
      if (!best && options_.stop()) return false;
      for (std::size_t plan = 0; best && plan < study_.plans.size(); ++plan) {
        compare_with(*best, run_at(runs, point, plan));
      }
    }
    return true;
  }

 private:
  struct Subject {
    WayQuestion question;
    Ranking ranking{};
    std::map<std::size_t, Run> runs{};  ///< Over all steps, by place in the ranking.
  };

  [[nodiscard]] Run& run_at(std::vector<Run>& runs, std::size_t point, std::size_t plan) const {
    return runs.at(point * study_.plans.size() + plan);
  }

  // `own` is the baseline at the point of `study`, as the study states it.
  void ask(const Run& own, Value study) {
    const StudyPoint& point = study_.points[own.info.point];
    WayQuestion question = way_question(point, study_.plans[baseline_], std::move(study));
    const auto [known, is_new] = numbers_.try_emplace(identity_of(question), subjects_.size());
    if (is_new) subjects_.push_back({std::move(question)});
    subjects_[known->second].question.known.push_back({StaticWay{sharing_of(point.spec)}, &own});
    asked_.emplace_back(own.info.point, known->second);
  }

  bool judge_all() {
    std::mutex reading;
    const std::size_t subjects = std::max<std::size_t>(1, subjects_.size());
    const JudgeOptions how{.catalog = catalog_,
                           .reading = reading,
                           .jobs = std::max<std::size_t>(1, options_.jobs / subjects),
                           .room = KnownSteps::most_entries / subjects,
                           .stop = options_.stop};
    const auto make_worker = [&] {
      return
          [&](std::int64_t number) { return judged_ways(subjects_[static_cast<std::size_t>(number)].question, how); };
    };
    bool stopped = false;
    const auto take = [&](std::int64_t number, std::optional<Ranking> ranking) {
      stopped |= !ranking;
      if (ranking) subjects_[static_cast<std::size_t>(number)].ranking = *std::move(ranking);
    };
    return run_in_order({0, std::ssize(subjects_), options_.jobs, options_.stop}, make_worker, take) && !stopped;
  }

  // The fastest way that fits over all steps; `own` is the baseline as the study states it. Empty if none fits, or if
  // it was stopped.
  [[nodiscard]] std::optional<BestStatic> best_of(Subject& subject, const Run& own) {
    const StudyPoint& point = study_.points[own.info.point];
    const StaticWay own_way{sharing_of(point.spec)};
    const auto stated = [&] { return BestStatic{std::make_shared<const Run>(own), degree_of(own_way, subject)}; };
    for (std::size_t place = 0; place < subject.ranking.size(); ++place) {
      const JudgedWay& judged = subject.ranking[place];
      if (judged.way == own_way) {
        if (own.metrics.fits) return stated();
        continue;
      }
      const Run* found = run_of(subject, place);
      if (found == nullptr) return std::nullopt;
      if (!found->metrics.fits) continue;
      const bool is_slower = found->metrics.step_time_s.mean >= own.metrics.step_time_s.mean;
      if (own.metrics.fits && is_slower) return stated();
      return BestStatic{beside(own, *found, judged.degree), judged.degree};
    }
    return std::nullopt;
  }

  // Of a way that fits.
  [[nodiscard]] static std::int64_t degree_of(const StaticWay& way, const Subject& subject) {
    const auto found = std::find_if(subject.ranking.begin(), subject.ranking.end(),
                                    [&](const JudgedWay& judged) { return judged.way == way; });
    HDPSIM_CHECK(found != subject.ranking.end(), "a way that fits all steps does not fit those that are judged");
    return found->degree;
  }

  // A way of the ranking over all steps; null if it was stopped. One that cannot run beside the study's other jobs does
  // not fit.
  [[nodiscard]] const Run* run_of(Subject& subject, std::size_t place) {
    const auto known = subject.runs.find(place);
    if (known != subject.runs.end()) return &known->second;
    const auto& [way, degree, step_s, steps] = subject.ranking[place];
    RunnerOptions options = options_;
    options.known = steps.get();
    Run run;
    run.metrics.fits = false;
    try {
      auto runs = run_study(read_study(study_of(subject.question, way), catalog_), options);
      if (!runs) return nullptr;
      run = std::move(runs->front());
      run.info.plan = way_name(study_.plans[baseline_].name, way);
    } catch (const InputError&) {  // it keeps that it does not fit
    }
    return &subject.runs.emplace(place, std::move(run)).first->second;
  }

  // The run at the point of the study's own baseline, with speed-ups of its own.
  [[nodiscard]] static std::shared_ptr<const Run> beside(const Run& own, Run run, std::int64_t degree) {
    run.info.point = own.info.point;
    run.info.coordinates = own.info.coordinates;
    run.metrics.speedup = speedup_over(own.info.plan, own.result, run.result);
    if (run.info.errors) {
      run.metrics.confidence->speedup =
          speedup_range(*run.info.errors, own.result, run.result, run.metrics.speedup->mean);
    }
    run.metrics.over_best_static = {speedup_over(run.info.plan, run.result, run.result), run.info.sharing, run.info.cut,
                                    degree, run.metrics.step_time_s.mean};
    return std::make_shared<const Run>(std::move(run));
  }

  const Study& study_;
  const std::size_t baseline_;
  Catalog& catalog_;
  RunnerOptions options_;
  std::vector<Subject> subjects_;
  std::map<std::string, std::size_t> numbers_;                // of subjects, by identity_of()
  std::vector<std::pair<std::size_t, std::size_t>> asked_{};  // points with their subjects
};

// The plan that the study's speed-ups are over, if it is a static mesh as the study states it.
std::optional<std::size_t> stated_static(const Study& study) {
  if (!study.compare_to || study.tunes_baseline) return std::nullopt;
  for (std::size_t plan = 0; plan < study.plans.size(); ++plan) {
    const StudyPlan& each = study.plans[plan];
    if (each.name == study.compare_to && is_static_mesh(each)) return plan;
  }
  return std::nullopt;
}

}  // namespace

bool has_best_static(const Study& study) {
  return stated_static(study).has_value();
}

bool compare_with_best_static(const Study& study, Catalog& catalog, const RunnerOptions& options,
                              std::vector<Run>& runs, std::optional<std::size_t> only) {
  const std::optional<std::size_t> baseline = stated_static(study);
  return !baseline || Comparison(study, *baseline, catalog, options).run(runs, only);
}

std::optional<BestStaticPlan> best_static_plan(const Study& study, std::size_t point, std::size_t baseline,
                                               Catalog& catalog, const std::function<bool()>& stop) {
  const StudyPlan& plan = study.plans.at(baseline);
  if (!is_static_mesh(plan)) return std::nullopt;
  Diagnostics none;
  const std::vector<SweepPoint> points = expand_sweep(study.resolved, none);
  const WayQuestion question = way_question(study.points.at(point), plan, points.at(point).study);
  std::mutex reading;
  const auto ranking = judged_ways(question, {.catalog = catalog, .reading = reading, .stop = stop});
  if (!ranking || ranking->empty()) return std::nullopt;
  const StaticWay& way = ranking->front().way;
  const bool is_stated = way == StaticWay{question.own};
  return BestStaticPlan{is_stated ? plan.name : way_name(plan.name, way), read_study(study_of(question, way), catalog),
                        ranking->front().degree};
}

}  // namespace hdpsim
