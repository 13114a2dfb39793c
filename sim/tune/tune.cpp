#include "sim/tune/tune.h"

#include <fmt/format.h>

#include <algorithm>
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
  double sharing_s = 0;           ///< How long a mean rank waits for keys and values in the closed form.
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
    result_.probe = median_step(study.points[0]);
    order_.push_back(result_.probe);
    for (std::int64_t step = 0; step < steps_; ++step) {
      if (step != result_.probe) order_.push_back(step);
    }
    if (!run.kept.path.empty()) journal_ = run.kept.open({"tuning", identity(root)});
    enter_all();
  }

  std::optional<TuneResult> run() {
    if (!bound_from(0) || !refine()) return std::nullopt;
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
    const auto take_result = [&](std::int64_t, Evaluation&& evaluation, bool /*is_new*/) {
      take(evaluation);
      ++done_;
      run_.report({stage, std::ssize(space_), left, result_.closed_form_steps + result_.full_steps, done_,
                   std::max(done_, most_evaluations())});
    };
    return run_kept({0, std::ssize(evaluations), run_.jobs, run_.stop}, journal_, key, make_worker, take_result);
  }

  // Every candidate in closed form, and a few rounds of the best.
  [[nodiscard]] std::int64_t most_evaluations() const { return std::ssize(space_) + 16 * study_.tune.keep; }

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
      if (evaluation.closed_form) {
        told.bound_s = seconds_of(step.time);
        contender.sharing_s = seconds_of(step.sharing);
      } else {
        contender.times_s.push_back(seconds_of(step.time));
        contender.flops += step.model_flops;
      }
    }
    (evaluation.closed_form ? result_.closed_form_steps : result_.full_steps) += std::ssize(evaluation.results);
    told.reason = evaluation.problem;
    told.fate = told.reason.empty() ? Fate::bounded : Fate::infeasible;
  }

  bool bound_from(std::size_t first) {
    std::vector<Evaluation> all;
    for (std::size_t i = first; i < space_.size(); ++i) {
      all.push_back({.candidate = i, .closed_form = true, .steps = {result_.probe}});
    }
    return evaluate(std::move(all), "closed form", std::ssize(all));
  }

  // Adds what is tried near the best candidates alone.
  bool refine() {
    while (true) {
      std::vector<BoundedCandidate> known;
      for (const Contender& each : contenders_) {
        known.push_back({each.told.fate != Fate::infeasible, each.told.bound_s, each.sharing_s});
      }
      std::vector<Candidate> more = refinement_.next(space_, known);
      if (more.empty()) return true;
      const std::size_t first = space_.size();
      std::move(more.begin(), more.end(), std::back_inserter(space_));
      enter_all();
      if (!bound_from(first)) return false;
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
    if (race.running.size() < race.places) return std::numeric_limits<double>::infinity();
    return (1 + slack) * full(race.running[race.places - 1], 1);
  }

  bool branch_and_bound(Race& race) {
    std::vector<std::size_t>& waiting = race.entered;
    sort_by(waiting, [&](std::size_t i) { return bound(i); });
    for (std::size_t at = 0; at < waiting.size() && bound(waiting[at]) <= limit(race); at += chunk) {
      const auto begin = waiting.begin() + static_cast<std::ptrdiff_t>(at);
      const std::vector<std::size_t> next(begin,
                                          begin + static_cast<std::ptrdiff_t>(std::min(chunk, waiting.size() - at)));
      if (!simulate_to(next, 1, "branch and bound", waiting.size() - at)) return false;
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

  // Simulates candidates that are on the front by their bound, which may remove them and admit others.
  bool simulate_front() {
    while (true) {
      estimate();
      std::vector<std::size_t> next = front();
      std::erase_if(next, [&](std::size_t i) { return !contenders_[i].times_s.empty(); });
      if (next.empty()) return true;
      if (!simulate_to(next, 1, "front", next.size())) return false;
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
  std::vector<std::size_t> finalists_;  // simulated over all steps for the first places, best first
  Journal journal_;
  std::int64_t done_ = 0;
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
