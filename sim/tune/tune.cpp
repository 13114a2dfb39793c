#include "sim/tune/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "sim/analysis/metrics.h"
#include "sim/base/quantity_text.h"
#include "sim/document/values.h"
#include "sim/plan/work_model.h"
#include "sim/run/kept_jobs.h"
#include "sim/study/override.h"
#include "sim/study/study_keys.h"
#include "sim/study/study_paths.h"
#include "sim/tune/evaluation.h"
#include "sim/tune/front.h"
#include "sim/tune/refinement.h"

namespace hdpsim {
namespace {

constexpr double slack = 0.1;
// Candidates simulated between two checks of the bound; a fixed number, so that results do not depend on the number of
// threads.
constexpr std::size_t chunk = 4;
// Candidates of a plan that are compared over all steps for being its best one.
constexpr std::size_t places_of_plan = 3;
constexpr double endless = std::numeric_limits<double>::infinity();
constexpr double memory_levels = 20;

using Fate = TunedCandidate::Fate;

// The step whose sum of squared lengths is the median.
std::int64_t median_step(const StudyPoint& point) {
  std::vector<std::pair<double, std::int64_t>> work;
  for (std::int64_t step = 0; step < point.spec.steps; ++step) {
    double squares = 0;
    for (const Sequence& sequence : point.batches->step(step).sequences) squares += causal_pairs(sequence.tokens);
    work.emplace_back(squares, step);
  }
  std::sort(work.begin(), work.end());
  return work[(work.size() - 1) / 2].second;
}

/// What the search knows of a candidate.
struct Contender {
  TunedCandidate told;
  std::vector<double> times_s{};  ///< Times of the first steps of the order, in the study's fidelity.
  std::size_t twin = 0;           ///< The first candidate with the same mesh and the same plan of the probe step.
  bool has_closed_form = false;   ///< Otherwise the bound is that of its plan.
  double sharing_s = 0;           ///< How long a mean rank waits for keys and values in the closed form, ...
  double bubble_s = 0;            ///< ... and for other stages.
  double flops = 0;               ///< Useful FLOPs of these steps.
  double peak_per_s = 0;          ///< FLOPs of one device.

  [[nodiscard]] double sum_s(std::size_t steps) const {
    return std::accumulate(times_s.begin(), times_s.begin() + static_cast<std::ptrdiff_t>(steps), 0.0);
  }
};

/// Candidates that compete for the first places.
struct Race {
  std::vector<std::size_t> entered;
  std::size_t places = 1;
  std::vector<std::size_t> running{};  ///< Those that may still win, best first.
};

// What the steps of candidates depend on, with the files behind every value of the space: of candidates that together
// contain all of these values.
std::string identity_of(const std::vector<Candidate>& space, Evaluator& evaluator) {
  std::string text;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < space.size(); ++i) {
    bool is_new = i == 0;
    for (const auto& [path, value] : space[i].choices) is_new |= seen.insert(path + '=' + line_of(value)).second;
    if (is_new) text += evaluator.identity_of(i);
  }
  return text;
}

// All that it chooses besides the plan.
std::string choices_but_plan(const Candidate& candidate) {
  std::string text;
  for (const auto& [path, value] : candidate.choices) {
    if (path != "plans") text += fmt::format("{}={}\n", path, line_of(value));
  }
  return text;
}

class Search {
 public:
  Search(const Study& study, const Value& root, Catalog& catalog, const TuneRun& run)
      : study_(study),
        run_(run),
        space_(candidates_of(study, root)),
        stated_(space_.size()),
        refinement_(study, space_),
        evaluator_(space_, catalog),
        steps_(study.points.at(0).spec.steps) {
    std::set<std::string> policies;
    for (const Candidate& candidate : space_) policies.insert(candidate.plan);
    policies_ = std::ssize(policies);
    result_.probe = median_step(study.points[0]);
    order_.push_back(result_.probe);
    for (std::int64_t step = 0; step < steps_; ++step) {
      if (step != result_.probe) order_.push_back(step);
    }
    if (!run.kept.path.empty()) journal_ = run.kept.open({"tuning", identity(root)});
    enter_all();
  }

  std::optional<TuneResult> run() {
    if (!plan_from(0) || !approach() || !refine()) return std::nullopt;
    is_refined_ = true;
    require_any();
    const auto finalists = winners_of([](std::size_t) { return true; }, keep());
    if (!finalists) return std::nullopt;
    require_any();
    finalists_ = *finalists;
    if (!finish_each_plan() || !simulate_front()) return std::nullopt;
    return conclusion();
  }

 private:
  [[nodiscard]] std::size_t keep() const { return static_cast<std::size_t>(study_.tune.keep); }

  // The figure to minimize: seconds, or GPU-seconds.
  [[nodiscard]] double score(const Contender& contender, double seconds) const {
    return study_.tune.objective == TuneObjective::cost ? seconds * static_cast<double>(contender.told.gpus) : seconds;
  }
  [[nodiscard]] double bound(std::size_t candidate) const {
    return score(contenders_[candidate], contenders_[candidate].told.bound_s);
  }
  /// The score over the first steps of the order.
  [[nodiscard]] double full(std::size_t candidate, std::size_t steps) const {
    return score(contenders_[candidate], contenders_[candidate].sum_s(steps));
  }

  // What the evaluations depend on.
  [[nodiscard]] std::string identity(const Value& root) {
    return fmt::format("hdpsim: {}\n{}{}", run_.version, to_yaml(root), identity_of(space_, evaluator_));
  }

  // Makes contenders of the candidates that are not among them.
  void enter_all() {
    for (std::size_t i = contenders_.size(); i < space_.size(); ++i) {
      contenders_.push_back({});
      contenders_.back().told.number = i;
      contenders_.back().told.text = space_[i].text;
      contenders_.back().told.plan = space_[i].plan;
    }
  }

  bool evaluate(std::vector<Evaluation> evaluations, const std::string& stage, std::int64_t left) {
    const auto asked = [&](std::int64_t number) -> Evaluation& {
      return evaluations[static_cast<std::size_t>(number)];
    };
    const auto make_worker = [&] { return [&](std::int64_t number) { return evaluator_.evaluate(asked(number)); }; };
    const auto key = [&](std::int64_t number) { return key_of(asked(number)); };
    const auto take_result = [&](std::int64_t number, Evaluation&& evaluation, bool is_new) {
      take(evaluation);
      TuneProgress now = progress(stage, left, evaluation.fidelity, std::ssize(evaluations) - number - 1);
      now.is_new = is_new;
      run_.report(now);
    };
    return run_kept({0, std::ssize(evaluations), run_.jobs, run_.stop}, journal_, key, make_worker, take_result);
  }

  [[nodiscard]] std::int64_t& steps_of(Fidelity fidelity) {
    if (fidelity == Fidelity::plan) return result_.planned_steps;
    return fidelity == Fidelity::closed_form ? result_.closed_form_steps : result_.full_steps;
  }

  // `next` more evaluations of this fidelity are certain.
  [[nodiscard]] TuneProgress progress(const std::string& stage, std::int64_t left, Fidelity fidelity,
                                      std::int64_t next) const {
    TuneProgress now{.stage = stage,
                     .candidates = std::ssize(space_),
                     .left = left,
                     .steps = result_.closed_form_steps + result_.full_steps,
                     .works_on = static_cast<std::size_t>(fidelity)};
    const std::array done = {result_.planned_steps, result_.closed_form_steps, result_.full_steps};
    const auto usual = usual_steps({static_cast<std::int64_t>(stated_), policies_, study_.tune.keep, steps_});
    for (std::size_t i = 0; i < done.size(); ++i) {
      const std::int64_t certain = done[i] + (i == now.works_on ? next : 0);
      const bool is_over = is_refined_ && now.works_on > i;
      now.work[i] = {done[i], is_over ? certain : std::max(certain, usual[i])};
    }
    return now;
  }

  void take(const Evaluation& evaluation) {
    Contender& contender = contenders_[evaluation.candidate];
    TunedCandidate& told = contender.told;
    told.gpus = evaluation.gpus;
    told.capacity = evaluation.capacity;
    contender.peak_per_s = evaluation.peak_per_s;
    for (const EvaluatedStep& step : evaluation.results) {
      told.device_gb = std::max(told.device_gb, step.device.gigabytes());
      told.device_at_most_gb = std::max(told.device_at_most_gb, step.device_at_most.gigabytes());
      told.is_at_risk = told.is_at_risk || step.is_at_risk;
      if (evaluation.fidelity == Fidelity::full) {
        contender.times_s.push_back(seconds_of(step.time));
        contender.flops += step.model_flops;
        continue;
      }
      told.bound_s = seconds_of(step.time);
      contender.has_closed_form = evaluation.fidelity == Fidelity::closed_form;
      contender.sharing_s = seconds_of(step.sharing);
      contender.bubble_s = seconds_of(step.bubble);
      if (evaluation.fidelity == Fidelity::plan) {
        const std::string key = choices_but_plan(space_[evaluation.candidate]) + fmt::format("{:016x}", step.plan);
        contender.twin = twins_.emplace(key, evaluation.candidate).first->second;
      }
    }
    steps_of(evaluation.fidelity) += std::ssize(evaluation.results);
    told.reason = evaluation.problem;
    told.fate = told.reason.empty() ? Fate::bounded : Fate::infeasible;
  }

  // The probe step of candidates, but not in full.
  bool look_at(const std::vector<std::size_t>& candidates, Fidelity fidelity, std::size_t left) {
    std::vector<Evaluation> all;
    for (const std::size_t i : candidates) {
      all.push_back({.candidate = i, .fidelity = fidelity, .steps = {result_.probe}});
    }
    return evaluate(std::move(all), fidelity == Fidelity::plan ? "plans" : "closed form",
                    static_cast<std::int64_t>(left));
  }

  bool plan_from(std::size_t first) {
    std::vector<std::size_t> all(space_.size() - first);
    std::iota(all.begin(), all.end(), first);
    return look_at(all, Fidelity::plan, all.size());
  }

  // In closed form a plan is simulated once, whichever policies make it on a mesh.
  bool look_closer_at(const std::vector<std::size_t>& candidates, std::size_t left) {
    std::set<std::size_t> unlike;
    for (const std::size_t i : candidates) unlike.insert(contenders_[i].twin);
    if (!look_at({unlike.begin(), unlike.end()}, Fidelity::closed_form, left)) return false;
    for (Contender& contender : contenders_) {
      const Contender& twin = contenders_[contender.twin];
      if (contender.told.fate == Fate::infeasible || contender.has_closed_form) continue;
      if (twin.told.fate == Fate::infeasible) {
        contender.told.fate = Fate::infeasible;
        contender.told.reason = twin.told.reason;
      }
      if (!twin.has_closed_form) continue;
      contender.has_closed_form = true;
      contender.told.bound_s = twin.told.bound_s;
      contender.sharing_s = twin.sharing_s;
      contender.bubble_s = twin.bubble_s;
    }
    return true;
  }

  // Those whose closed form is to be computed next: of every plan the lowest bounds, as long as they are near its best.
  [[nodiscard]] std::vector<std::size_t> next_approached() const {
    struct OfPlan {
      std::vector<double> best{};  ///< By closed form.
      std::vector<std::size_t> waiting{};
    };
    std::map<std::string, OfPlan> plans;
    for (const std::size_t i : feasible()) {
      OfPlan& plan = plans[space_[i].plan];
      if (!contenders_[i].has_closed_form) plan.waiting.push_back(i);
      if (contenders_[i].has_closed_form) plan.best.push_back(bound(i));
    }
    std::vector<std::size_t> next;
    for (auto& [name, plan] : plans) {
      std::sort(plan.best.begin(), plan.best.end());
      const double last = plan.best.size() < places_of_plan ? endless : (1 + slack) * plan.best[places_of_plan - 1];
      std::erase_if(plan.waiting, [&](std::size_t i) { return bound(i) > last; });
      sort_by(plan.waiting, [&](std::size_t i) { return bound(i); });
      plan.waiting.resize(std::min(chunk, plan.waiting.size()));
      next.insert(next.end(), plan.waiting.begin(), plan.waiting.end());
    }
    return next;
  }

  // The closed form of all candidates that may be among the best of their plan.
  bool approach() {
    while (true) {
      const std::vector<std::size_t> next = next_approached();
      if (next.empty()) return true;
      if (!look_closer_at(next, next.size())) return false;
    }
  }

  // Takes up more candidates, at least as far as their plans.
  bool admit(std::vector<Candidate> more) {
    const std::size_t first = space_.size();
    std::move(more.begin(), more.end(), std::back_inserter(space_));
    enter_all();
    return plan_from(first);
  }

  // Adds what is tried near the best candidates alone.
  bool refine() {
    while (true) {
      std::vector<BoundedCandidate> known;
      for (const Contender& each : contenders_) {
        known.push_back({each.told.fate != Fate::infeasible, each.has_closed_form, each.told.bound_s, each.sharing_s,
                         each.bubble_s});
      }
      std::vector<Candidate> more = refinement_.next(space_, known);
      if (more.empty()) return true;
      if (!admit(std::move(more)) || !approach()) return false;
    }
  }

  // Refinements that cannot run are no candidates.
  [[nodiscard]] bool is_told(std::size_t candidate) const {
    return candidate < stated_ || contenders_[candidate].told.fate != Fate::infeasible;
  }

  [[nodiscard]] std::vector<std::size_t> feasible() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < contenders_.size(); ++i) {
      if (contenders_[i].told.fate != Fate::infeasible) found.push_back(i);
    }
    return found;
  }

  void require_any() const {
    if (!feasible().empty()) return;
    std::map<std::string, std::int64_t> reasons;
    for (std::size_t i = 0; i < stated_; ++i) ++reasons[contenders_[i].told.reason];
    Diagnostics problems;
    problems.error({}, fmt::format("none of the {} candidates can run", stated_));
    for (const auto& [reason, count] : reasons) problems.error({}, fmt::format("{} of them: {}", count, reason));
    problems.throw_if_any();
  }

  template <class Figure>
  static void sort_by(std::vector<std::size_t>& candidates, const Figure& figure) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [&](std::size_t a, std::size_t b) { return figure(a) < figure(b); });
  }

  bool simulate_to(const std::vector<std::size_t>& candidates, std::size_t steps, const std::string& stage,
                   std::size_t left) {
    std::vector<Evaluation> evaluations;
    for (const std::size_t candidate : candidates) {
      const std::size_t done = contenders_[candidate].times_s.size();
      if (done >= steps) continue;
      const auto begin = order_.begin();
      evaluations.push_back(
          {.candidate = candidate,
           .steps = {begin + static_cast<std::ptrdiff_t>(done), begin + static_cast<std::ptrdiff_t>(steps)}});
    }
    return evaluate(std::move(evaluations), stage, static_cast<std::int64_t>(left));
  }

  // Those of `candidates` that can still run, best first by the first steps.
  [[nodiscard]] std::vector<std::size_t> ranked(std::vector<std::size_t> candidates, std::size_t steps) const {
    std::erase_if(candidates, [&](std::size_t i) { return contenders_[i].told.fate == Fate::infeasible; });
    sort_by(candidates, [&](std::size_t i) { return full(i, steps); });
    return candidates;
  }

  // A candidate whose bound exceeds this cannot be one of the best.
  [[nodiscard]] double limit(const Race& race) const {
    if (race.running.size() < race.places) return endless;
    return (1 + slack) * full(race.running[race.places - 1], 1);
  }

  // Simulates in the order of bounds. One that is only that of a plan gives way to that of the closed form first.
  bool branch_and_bound(Race& race) {
    std::vector<std::size_t>& waiting = race.entered;
    while (true) {
      const double last = limit(race);
      std::erase_if(waiting,
                    [&](std::size_t i) { return contenders_[i].told.fate == Fate::infeasible || bound(i) > last; });
      if (waiting.empty()) break;
      sort_by(waiting, [&](std::size_t i) { return bound(i); });
      const auto end = waiting.begin() + static_cast<std::ptrdiff_t>(std::min(chunk, waiting.size()));
      const std::vector<std::size_t> next(waiting.begin(), end);
      std::vector<std::size_t> coarse = next;
      std::erase_if(coarse, [&](std::size_t i) { return contenders_[i].has_closed_form; });
      if (!coarse.empty()) {
        if (!look_closer_at(coarse, waiting.size())) return false;
        continue;
      }
      if (!simulate_to(next, 1, "branch and bound", waiting.size())) return false;
      waiting.erase(waiting.begin(), end);
      race.running.insert(race.running.end(), next.begin(), next.end());
      race.running = ranked(std::move(race.running), 1);
    }
    const double last = limit(race);
    std::erase_if(race.running, [&](std::size_t i) { return full(i, 1) > last; });
    return true;
  }

  bool halve(Race& race) {
    std::vector<std::size_t>& running = race.running;
    for (std::size_t steps = 1; steps < order_.size();) {
      steps = std::min(2 * steps, order_.size());
      if (!simulate_to(running, steps, "successive halving", running.size())) return false;
      running = ranked(std::move(running), steps);
      const std::size_t half = steps == order_.size() ? running.size() : (running.size() + 1) / 2;
      running.resize(std::min(running.size(), std::max(race.places, half)));
    }
    return true;
  }

  // The best of the candidates that take part, best first, all of them simulated over all steps. Repeated if the best
  // ones turn out not to fit; empty if none does. Nothing if it was stopped.
  template <class TakesPart>
  std::optional<std::vector<std::size_t>> winners_of(const TakesPart& takes_part, std::size_t places) {
    while (true) {
      Race race{feasible(), places};
      std::erase_if(race.entered, [&](std::size_t i) { return !takes_part(i); });
      if (race.entered.empty()) return race.running;
      if (!branch_and_bound(race) || !halve(race)) return std::nullopt;
      if (!race.running.empty()) return race.running;
    }
  }

  // Marks the best candidate of every plan, each found by a race of its own: what a plan's candidates lose to another
  // plan's says little of which of them is best.
  bool finish_each_plan() {
    std::set<std::string> plans;
    for (const Candidate& candidate : space_) plans.insert(candidate.plan);
    for (const std::string& plan : plans) {
      const auto is_of_plan = [&](std::size_t i) { return space_[i].plan == plan; };
      const auto winners = winners_of(is_of_plan, places_of_plan);
      if (!winners) return false;
      if (!winners->empty()) contenders_[winners->front()].told.best_of_plan = true;
    }
    return true;
  }

  [[nodiscard]] FrontPoint front_point(std::size_t candidate) const {
    const TunedCandidate& told = contenders_[candidate].told;
    const double device_gb = study_.points[0].spec.cluster.least_device_memory().gigabytes();
    return {told.time_s, std::ceil(memory_levels * told.device_gb / device_gb), static_cast<double>(told.gpus)};
  }

  [[nodiscard]] std::vector<std::size_t> front() const {
    const std::vector<std::size_t> candidates = feasible();
    std::vector<FrontPoint> points;
    points.reserve(candidates.size());
    for (const std::size_t candidate : candidates) points.push_back(front_point(candidate));
    std::vector<std::size_t> found;
    for (const std::size_t i : pareto_front(points)) found.push_back(candidates[i]);
    return found;
  }

  // Simulates candidates that are on the front by their bound, which may remove them and admit others. Pipelines on it
  // are tried with other schedules and placements.
  bool simulate_front() {
    while (true) {
      estimate();
      const std::vector<std::size_t> members = front();
      std::vector<std::size_t> next = members;
      std::erase_if(next, [&](std::size_t i) { return !contenders_[i].times_s.empty(); });
      if (!next.empty()) {
        if (!simulate_to(next, 1, "front", next.size())) return false;
        continue;
      }
      std::vector<Candidate> more = refinement_.other_pipelines(space_, members);
      if (more.empty()) return true;
      if (!admit(std::move(more))) return false;
    }
  }

  // States times relative to the winner, on the steps that both were simulated on, or on the probe step.
  void estimate() {
    const Contender& winner = contenders_[finalists_.front()];
    const double winner_s = winner.sum_s(winner.times_s.size()) / static_cast<double>(winner.times_s.size());
    for (Contender& contender : contenders_) {
      TunedCandidate& told = contender.told;
      if (told.fate == Fate::infeasible) continue;
      told.steps = std::ssize(contender.times_s);
      if (told.steps == 0) {
        told.ratio = told.ratio_p5 = told.ratio_p95 = told.bound_s / winner.times_s.front();
        told.fate = Fate::bounded;
      } else {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < contender.times_s.size(); ++i) {
          ratios.push_back(contender.times_s[i] / winner.times_s[i]);
        }
        told.ratio = contender.sum_s(ratios.size()) / winner.sum_s(ratios.size());
        told.ratio_p5 = percentile(ratios, 0.05);
        told.ratio_p95 = percentile(ratios, 0.95);
        told.fate = ratios.size() == order_.size() ? Fate::finished : Fate::slower;
      }
      told.time_s = told.ratio * winner_s;
      const auto gpus = static_cast<double>(told.gpus);
      const double steps = static_cast<double>(winner.times_s.size());
      told.mfu = winner.flops / (contender.peak_per_s * gpus * steps * told.time_s);
      const double tokens = static_cast<double>(study_.points[0].spec.batch.tokens_per_step);
      told.gpu_hours_per_gigatoken = gpus * told.time_s / 3600 / tokens * 1e9;
    }
  }

  TuneResult conclusion() {
    for (const std::size_t candidate : front()) contenders_[candidate].told.on_front = true;
    std::vector<std::size_t> order(contenders_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t i) { return !is_told(i); });
    const std::set<std::size_t> finalists(finalists_.begin(), finalists_.end());
    sort_by(order, [&](std::size_t i) {
      const TunedCandidate& told = contenders_[i].told;
      const int group = finalists.contains(i) ? 0 : told.fate == Fate::infeasible ? 2 : 1;
      return std::pair(group, score(contenders_[i], told.time_s));
    });
    for (const std::size_t i : order) result_.candidates.push_back(std::move(contenders_[i].told));
    const Study winner = evaluator_.study_of(result_.candidates.front().number);
    const PointSpec& spec = study_.points[0].spec;
    result_.study = study_.name;
    result_.setting = fmt::format("{} on {} x {}, {} steps of {} tokens", spec.model.name, spec.mesh.devices(),
                                  spec.cluster.device, steps_, count_text(spec.batch.tokens_per_step));
    result_.profile = study_.run_info(0, 0).profile;
    result_.steps = steps_;
    result_.feasible = std::ssize(feasible());
    result_.device_memory_gb = study_.points[0].spec.cluster.least_device_memory().gigabytes();
    result_.winner = winner.resolved;
    result_.winner.set("name", Value::scalar(study_.name + "-tuned"));
    return std::move(result_);
  }

  const Study& study_;
  const TuneRun& run_;
  std::vector<Candidate> space_;
  const std::size_t stated_;  // candidates before refinements
  Refinement refinement_;
  Evaluator evaluator_;
  const std::int64_t steps_;
  std::vector<std::int64_t> order_;  // order of steps: the probe first
  std::vector<Contender> contenders_;
  std::vector<std::size_t> finalists_;        // simulated over all steps for the first places, best first
  std::map<std::string, std::size_t> twins_;  // the first candidate by mesh and plan
  Journal journal_;
  bool is_refined_ = false;
  std::int64_t policies_ = 0;
  TuneResult result_;
};

}  // namespace

Value tuning_root(Value written, const std::vector<std::string>& overrides, const std::vector<std::string>& without) {
  Diagnostics none;
  apply_overrides(written, overrides, none);
  apply_without(written, without, none);
  make_paths_absolute(written);
  return written;
}

std::string tuning_identity(const Study& study, const Value& root, Catalog& catalog) {
  const std::vector<Candidate> space = candidates_of(study, root);
  Evaluator evaluator(space, catalog);
  std::string text = fmt::format("keep: {}\nobjective: {}\n", study.tune.keep, static_cast<int>(study.tune.objective));
  text += identity_text(space.front().study) + to_yaml(*space.front().study.find("plans"));
  text += identity_of(space, evaluator);
  for (const Candidate& candidate : space) text += candidate.text + '\n';
  text += Refinement(study, space).identity();
  return text;
}

std::optional<TuneResult> tune(const Study& study, const Value& root, Catalog& catalog, const TuneRun& run) {
  return Search(study, root, catalog, run).run();
}

}  // namespace hdpsim
