#include "sim/tune/candidate_steps.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "sim/run/kept_jobs.h"

namespace hdpsim {
namespace {

// Candidates for each that is measured beforehand, and the most of these: less than a hundredth of a large search.
constexpr std::size_t measured_of = 128;
constexpr std::size_t most_measured = 6;
constexpr std::int64_t between_forecasts = 64;

}  // namespace

template <class Take>
bool CandidateSteps::compute(std::vector<Evaluation> evaluations, const Take& take) {
  const auto asked = [&](std::int64_t number) -> Evaluation& { return evaluations[static_cast<std::size_t>(number)]; };
  const auto make_worker = [&] { return [&](std::int64_t number) { return evaluator_.evaluate(asked(number)); }; };
  const auto key = [&](std::int64_t number) { return key_of(asked(number)); };
  const auto take_result = [&](std::int64_t, const Evaluation& evaluation, bool is_new) {
    clock(evaluation, is_new);
    take(evaluation);
  };
  last_s_ = now_s();
  return run_kept({0, std::ssize(evaluations), run_.jobs, run_.stop}, journal_, key, make_worker, take_result);
}

// Takes its time since the last one.
void CandidateSteps::clock(const Evaluation& evaluation, bool is_new) {
  const double end_s = now_s();
  const double seconds = end_s - std::exchange(last_s_, end_s);
  const bool was_simulated = evaluation.fidelity == Fidelity::plan || !evaluation.results.empty();
  if (is_new && was_simulated) measured_[kind_of(evaluation)].add(seconds, std::ssize(evaluation.steps));
}

bool CandidateSteps::measure() {
  if (!run_.clock) return true;
  const std::size_t count = std::min(most_measured, contenders_.size() / measured_of);
  std::vector<Evaluation> evaluations;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t candidate = (2 * k + 1) * contenders_.size() / (2 * count);
    evaluations.push_back({.candidate = candidate, .fidelity = Fidelity::closed_form, .steps = {contenders_.probe()}});
  }
  std::vector<Evaluation> full;
  const auto add_full = [&](const Evaluation& closed) {
    if (!closed.problem.empty()) return;
    full.push_back({.candidate = closed.candidate, .fidelity = Fidelity::full, .steps = closed.steps});
    if (full.size() % 2 == 0) full.back().closed_form = closed.results.front();
  };
  return compute(std::move(evaluations), add_full) && compute(std::move(full), [](const Evaluation&) {});
}

bool CandidateSteps::evaluate(std::vector<Evaluation> evaluations, const std::string& stage, std::size_t left) {
  StepCounts to_come = forecast_.left();
  StepCounts certain{};
  std::vector<std::size_t> kinds;
  for (const Evaluation& each : evaluations) {
    kinds.push_back(kind_of(each));
    certain[kinds.back()] += std::ssize(each.steps);
  }
  std::int64_t taken = 0;
  return compute(std::move(evaluations), [&](const Evaluation& evaluation) {
    const std::size_t kind = kinds[static_cast<std::size_t>(taken)];
    contenders_.take(evaluation);
    done_[kind] += std::ssize(evaluation.results);
    certain[kind] -= std::ssize(evaluation.steps);
    to_come[kind] -= std::ssize(evaluation.steps);
    if (++taken % between_forecasts == 0) to_come = forecast_.left();
    for (std::size_t i = 0; i < to_come.size(); ++i) to_come[i] = std::max(certain[i], to_come[i]);
    run_.report(progress(stage, left, to_come));
  });
}

TuneProgress CandidateSteps::progress(const std::string& stage, std::size_t left, const StepCounts& to_come) const {
  TuneProgress now{.stage = stage,
                   .candidates = std::ssize(contenders_.space()),
                   .left = static_cast<std::int64_t>(left),
                   .steps = std::accumulate(done_.begin() + 1, done_.end(), std::int64_t{0})};
  for (std::size_t i = 0; i < now.work.size(); ++i) now.work[i] = {done_[i], done_[i] + to_come[i], measured_[i]};
  return now;
}

// The probe step of candidates, but not in full.
bool CandidateSteps::probe(const CandidateNumbers& candidates, Fidelity fidelity, std::size_t left) {
  std::vector<Evaluation> all;
  for (const std::size_t i : candidates) {
    all.push_back({.candidate = i, .fidelity = fidelity, .steps = {contenders_.probe()}});
  }
  return evaluate(std::move(all), fidelity == Fidelity::plan ? "plans" : "closed form", left);
}

bool CandidateSteps::plan_from(std::size_t first) {
  CandidateNumbers all(contenders_.size() - first);
  std::iota(all.begin(), all.end(), first);
  return probe(all, Fidelity::plan, all.size());
}

bool CandidateSteps::in_closed_form(const CandidateNumbers& candidates, std::size_t left) {
  std::set<std::size_t> unlike;
  for (const std::size_t i : candidates) unlike.insert(contenders_[i].twin);
  if (!probe({unlike.begin(), unlike.end()}, Fidelity::closed_form, left)) return false;
  contenders_.share_closed_forms();
  return true;
}

bool CandidateSteps::in_full(const CandidateNumbers& candidates, std::size_t steps, const std::string& stage,
                             std::size_t left) {
  std::vector<Evaluation> evaluations;
  const auto begin = contenders_.order().begin();
  for (const std::size_t candidate : candidates) {
    const std::size_t done = contenders_[candidate].times_s.size();
    if (done >= steps) continue;
    evaluations.push_back(
        {.candidate = candidate,
         .steps = {begin + static_cast<std::ptrdiff_t>(done), begin + static_cast<std::ptrdiff_t>(steps)}});
    if (done == 0) evaluations.back().closed_form = contenders_[candidate].closed_form;
  }
  return evaluate(std::move(evaluations), stage, left);
}

}  // namespace hdpsim
