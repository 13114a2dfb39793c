#include "sim/tune/contenders.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "sim/analysis/metrics.h"
#include "sim/document/values.h"
#include "sim/plan/work_model.h"
#include "sim/tune/front.h"

namespace hdpsim {
namespace {

using Fate = TunedCandidate::Fate;

constexpr double memory_levels = 20;

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

// All that it chooses besides the plan.
std::string choices_but_plan(const Candidate& candidate) {
  std::string text;
  for (const auto& [path, value] : candidate.choices) {
    if (path != "plans") text += fmt::format("{}={}\n", path, line_of(value));
  }
  return text;
}

// The ratios of a contender's times to the winner's.
void state_ratios(const Contender& contender, const Contender& winner, std::size_t all_steps, TunedCandidate& figures) {
  figures.steps = std::ssize(contender.times_s);
  if (figures.steps == 0) {
    figures.ratio = figures.ratio_p5 = figures.ratio_p95 = figures.bound_s / winner.times_s.front();
    figures.fate = Fate::bounded;
    return;
  }
  std::vector<double> ratios;
  for (std::size_t i = 0; i < contender.times_s.size(); ++i) {
    ratios.push_back(contender.times_s[i] / winner.times_s[i]);
  }
  figures.ratio = contender.sum_s(ratios.size()) / winner.sum_s(ratios.size());
  figures.ratio_p5 = percentile(ratios, 0.05);
  figures.ratio_p95 = percentile(ratios, 0.95);
  figures.fate = ratios.size() == all_steps ? Fate::finished : Fate::slower;
}

FrontPoint front_point(const Contenders& contenders, std::size_t candidate, double time_s) {
  const TunedCandidate& figures = contenders[candidate].figures;
  const double device_gb = contenders.study().points[0].spec.cluster.least_device_memory().gigabytes();
  return {time_s, std::ceil(memory_levels * figures.device_gb / device_gb), static_cast<double>(figures.gpus)};
}

CandidateNumbers front_among(const Contenders& contenders, const CandidateNumbers& candidates,
                             const std::function<double(std::size_t)>& time_s) {
  std::vector<FrontPoint> points;
  points.reserve(candidates.size());
  for (const std::size_t i : candidates) points.push_back(front_point(contenders, i, time_s(i)));
  CandidateNumbers found;
  for (const std::size_t i : pareto_front(points)) found.push_back(candidates[i]);
  return found;
}

}  // namespace

double Contender::sum_s(std::size_t steps) const {
  return std::accumulate(times_s.begin(), times_s.begin() + static_cast<std::ptrdiff_t>(steps), 0.0);
}

Contenders::Contenders(const Study& study, std::vector<Candidate> space)
    : study_(study), space_(std::move(space)), stated_(space_.size()) {
  const StudyPoint& point = study.points.at(0);
  order_.push_back(median_step(point));
  for (std::int64_t step = 0; step < point.spec.steps; ++step) {
    if (step != order_.front()) order_.push_back(step);
  }
  enter_all();
}

// Makes contenders of the candidates that are not among them.
void Contenders::enter_all() {
  for (std::size_t i = contenders_.size(); i < space_.size(); ++i) {
    TunedCandidate& figures = contenders_.emplace_back().figures;
    figures.number = i;
    figures.text = space_[i].text;
    figures.plan = space_[i].plan;
  }
}

void Contenders::add(std::vector<Candidate> more) {
  std::move(more.begin(), more.end(), std::back_inserter(space_));
  enter_all();
}

void Contenders::take(const Evaluation& evaluation) {
  Contender& contender = contenders_[evaluation.candidate];
  TunedCandidate& figures = contender.figures;
  figures.gpus = evaluation.gpus;
  figures.capacity = evaluation.capacity;
  contender.peak_per_s = evaluation.peak_per_s;
  contender.is_planned = true;
  for (const EvaluatedStep& step : evaluation.results) {
    figures.device_gb = std::max(figures.device_gb, step.device.gigabytes());
    figures.device_at_most_gb = std::max(figures.device_at_most_gb, step.device_at_most.gigabytes());
    figures.is_at_risk = figures.is_at_risk || step.is_at_risk;
    if (evaluation.fidelity == Fidelity::full) {
      contender.times_s.push_back(seconds_of(step.time));
      contender.flops += step.model_flops;
      continue;
    }
    figures.bound_s = seconds_of(step.time);
    if (evaluation.fidelity == Fidelity::closed_form) {
      contender.closed_form = step;
    } else {
      const std::string key = choices_but_plan(space_[evaluation.candidate]) + fmt::format("{:016x}", step.plan);
      contender.twin = twins_.emplace(key, evaluation.candidate).first->second;
    }
  }
  figures.reason = evaluation.problem;
  figures.fate = figures.reason.empty() ? Fate::bounded : Fate::infeasible;
}

void Contenders::share_closed_forms() {
  for (Contender& contender : contenders_) {
    if (contender.can_run() && !contender.closed_form) share_with(contender, contenders_[contender.twin]);
  }
}

void Contenders::share_with(Contender& contender, const Contender& twin) const {
  if (!twin.can_run()) {
    contender.figures.fate = Fate::infeasible;
    contender.figures.reason = twin.figures.reason;
  }
  if (!twin.closed_form) return;
  contender.closed_form = twin.closed_form;
  contender.figures.bound_s = twin.figures.bound_s;
}

double Contenders::score(std::size_t candidate, double seconds) const {
  if (study_.tune.objective != TuneObjective::cost) return seconds;
  return seconds * static_cast<double>(contenders_[candidate].figures.gpus);
}

double Contenders::bound(std::size_t candidate) const {
  return score(candidate, contenders_[candidate].figures.bound_s);
}

double Contenders::full(std::size_t candidate, std::size_t steps) const {
  return score(candidate, contenders_[candidate].sum_s(steps));
}

CandidateNumbers Contenders::feasible() const {
  CandidateNumbers found;
  for (std::size_t i = 0; i < contenders_.size(); ++i) {
    if (contenders_[i].can_run()) found.push_back(i);
  }
  return found;
}

std::vector<BoundedCandidate> Contenders::bounds() const {
  std::vector<BoundedCandidate> known;
  known.reserve(contenders_.size());
  for (const Contender& each : contenders_) {
    const EvaluatedStep step = each.closed_form.value_or(EvaluatedStep{});
    known.push_back({each.can_run(), each.closed_form.has_value(), each.figures.bound_s, seconds_of(step.sharing),
                     seconds_of(step.bubble)});
  }
  return known;
}

void Contenders::require_any() const {
  if (!feasible().empty()) return;
  std::map<std::string, std::int64_t> reasons;
  for (std::size_t i = 0; i < stated_; ++i) ++reasons[contenders_[i].figures.reason];
  Diagnostics problems;
  problems.error({}, fmt::format("none of the {} candidates can run", stated_));
  for (const auto& [reason, count] : reasons) problems.error({}, fmt::format("{} of them: {}", count, reason));
  problems.throw_if_any();
}

CandidateNumbers front_of(const Contenders& contenders, const std::function<double(std::size_t)>& time_s) {
  return front_among(contenders, contenders.feasible(), time_s);
}

CandidateNumbers may_reach_front(const Contenders& contenders) {
  const auto bound_s = [&](std::size_t i) {
    return contenders[i].times_s.empty() ? contenders[i].figures.bound_s : contenders[i].times_s.front();
  };
  CandidateNumbers known = contenders.feasible();
  std::erase_if(known, [&](std::size_t i) { return !contenders[i].closed_form && contenders[i].times_s.empty(); });
  known = front_among(contenders, known, bound_s);
  CandidateNumbers found = contenders.feasible();
  std::erase_if(found, [&](std::size_t i) {
    const FrontPoint own = front_point(contenders, i, bound_s(i));
    return std::any_of(known.begin(), known.end(), [&](std::size_t k) {
      const FrontPoint other = front_point(contenders, k, bound_s(k));
      return k != i && std::equal(other.begin(), other.end(), own.begin(), std::less_equal<>());
    });
  });
  return found;
}

void state_times(Contenders& contenders, std::size_t winner) {
  const Contender best = contenders[winner];
  const auto steps = static_cast<double>(best.times_s.size());
  const double winner_s = best.sum_s(best.times_s.size()) / steps;
  const double tokens = static_cast<double>(contenders.study().points[0].spec.batch.tokens_per_step);
  for (const std::size_t i : contenders.feasible()) {
    TunedCandidate& figures = contenders[i].figures;
    state_ratios(contenders[i], best, contenders.order().size(), figures);
    figures.time_s = figures.ratio * winner_s;
    const auto gpus = static_cast<double>(figures.gpus);
    figures.mfu = best.flops / (contenders[i].peak_per_s * gpus * steps * figures.time_s);
    figures.gpu_hours_per_gigatoken = gpus * figures.time_s / 3600 / tokens * 1e9;
  }
}

}  // namespace hdpsim
