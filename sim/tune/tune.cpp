#include "sim/tune/tune.h"

#include <fmt/format.h>

#include <numeric>
#include <set>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/document/values.h"
#include "sim/study/override.h"
#include "sim/study/study_keys.h"
#include "sim/study/study_paths.h"
#include "sim/tune/candidate_steps.h"
#include "sim/tune/closed_forms.h"
#include "sim/tune/contenders.h"
#include "sim/tune/evaluation.h"
#include "sim/tune/forecast.h"
#include "sim/tune/races.h"
#include "sim/tune/refinement.h"
#include "sim/tune/search_rules.h"

namespace hdpsim {
namespace {

using Fate = TunedCandidate::Fate;

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

/// A search from its space to its result, stage by stage.
class Search {
 public:
  Search(const Study& study, const Value& root, Catalog& catalog, const TuneRun& run)
      : study_(study),
        contenders_(study, candidates_of(study, root)),
        refinement_(study, contenders_.space()),
        evaluator_(contenders_.space(), catalog),
        forecast_(contenders_, refinement_),
        steps_(contenders_, evaluator_, forecast_, run) {
    if (run.kept.path.empty()) return;
    const std::string identity =
        fmt::format("hdpsim: {}\n{}{}", run.version, to_yaml(root), identity_of(contenders_.space(), evaluator_));
    steps_.keep_in(run.kept.open({"tuning", identity}));
  }

  std::optional<TuneResult> run() {
    if (!steps_.measure() || !steps_.plan_from(0) || !approach() || !refine()) return std::nullopt;
    contenders_.require_any();
    Races races(contenders_, steps_);
    const auto finalists = races.winners_of(contenders_.feasible(), static_cast<std::size_t>(study_.tune.keep));
    if (!finalists) return std::nullopt;
    contenders_.require_any();
    forecast_.end_first_race();
    if (!finish_each_plan(races) || !simulate_front(finalists->front())) return std::nullopt;
    return conclusion(*finalists);
  }

 private:
  // The closed form of all candidates that may be among the best of their plan.
  bool approach() {
    while (true) {
      const CandidateNumbers next = closed_forms_to_come(contenders_, search_rules::at_a_time);
      if (next.empty()) return true;
      if (!steps_.in_closed_form(next, next.size())) return false;
    }
  }

  // Takes up more candidates, at least as far as their plans.
  bool admit(std::vector<Candidate> more) {
    const std::size_t first = contenders_.size();
    contenders_.add(std::move(more));
    return steps_.plan_from(first);
  }

  // Adds what is tried near the best candidates alone.
  bool refine() {
    while (true) {
      std::vector<Candidate> more = refinement_.next(contenders_.space(), contenders_.bounds());
      if (more.empty()) return true;
      if (!admit(std::move(more)) || !approach()) return false;
    }
  }

  // Marks the best candidate of every plan, each found by a race of its own: what a plan's candidates lose to another
  // plan's says little of which of them is best.
  bool finish_each_plan(Races& races) {
    std::set<std::string> plans;
    for (const Candidate& candidate : contenders_.space()) plans.insert(candidate.plan);
    for (const std::string& plan : plans) {
      CandidateNumbers entered = contenders_.feasible();
      std::erase_if(entered, [&](std::size_t i) { return contenders_.space()[i].plan != plan; });
      const auto winners = races.winners_of(entered, search_rules::places_of_plan);
      if (!winners) return false;
      if (!winners->empty()) contenders_[winners->front()].figures.best_of_plan = true;
    }
    return true;
  }

  [[nodiscard]] CandidateNumbers front() const {
    return front_of(contenders_, [&](std::size_t i) { return contenders_[i].figures.time_s; });
  }

  // Simulates candidates that are on the front by their bound, which may remove them and admit others. Pipelines on it
  // are tried with other schedules and placements.
  bool simulate_front(std::size_t winner) {
    while (true) {
      state_times(contenders_, winner);
      const CandidateNumbers members = front();
      CandidateNumbers next = members;
      std::erase_if(next, [&](std::size_t i) { return !contenders_[i].times_s.empty(); });
      if (!next.empty()) {
        if (!steps_.in_full(next, 1, "front", next.size())) return false;
        continue;
      }
      std::vector<Candidate> more = refinement_.other_pipelines(contenders_.space(), members);
      if (more.empty()) return true;
      if (!admit(std::move(more))) return false;
    }
  }

  // All candidates in the order of the result. Refinements that cannot run are no candidates.
  [[nodiscard]] CandidateNumbers ranking(const CandidateNumbers& first) const {
    CandidateNumbers order(contenders_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::erase_if(order, [&](std::size_t i) { return i >= contenders_.stated() && !contenders_[i].can_run(); });
    const std::set<std::size_t> finalists(first.begin(), first.end());
    Contenders::sort_by(order, [&](std::size_t i) {
      const int group = finalists.contains(i) ? 0 : contenders_[i].can_run() ? 1 : 2;
      return std::pair(group, contenders_.score(i, contenders_[i].figures.time_s));
    });
    return order;
  }

  TuneResult conclusion(const CandidateNumbers& finalists) {
    TuneResult result;
    for (const std::size_t candidate : front()) contenders_[candidate].figures.on_front = true;
    for (const std::size_t i : ranking(finalists)) result.candidates.push_back(contenders_[i].figures);
    const Study winner = evaluator_.study_of(result.candidates.front().number);
    const PointSpec& spec = study_.points[0].spec;
    result.study = study_.name;
    result.setting = fmt::format("{} on {} x {}, {} steps of {} tokens", spec.model.name, spec.mesh.devices(),
                                 spec.cluster.device, spec.steps, count_text(spec.batch.tokens_per_step));
    result.profile = study_.run_info(0, 0).profile;
    result.steps = spec.steps;
    result.probe = contenders_.probe();
    const auto& [planned, closed, full, with_closed_form] = steps_.done();
    result.planned_steps = planned;
    result.closed_form_steps = closed;
    result.full_steps = full + with_closed_form;
    result.feasible = std::ssize(contenders_.feasible());
    result.device_memory_gb = spec.cluster.least_device_memory().gigabytes();
    result.winner = winner.resolved;
    result.winner.set("name", Value::scalar(study_.name + "-tuned"));
    return result;
  }

  const Study& study_;
  Contenders contenders_;
  Refinement refinement_;
  Evaluator evaluator_;
  Forecast forecast_;
  CandidateSteps steps_;
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
