#include "tests/fuzz/searches.h"

#include <algorithm>

#include "sim/replay/replay_report.h"
#include "sim/tune/evaluation.h"
#include "sim/tune/tune_report.h"
#include "tests/fuzz/groups.h"
#include "tests/fuzz/sane.h"
#include "tests/fuzz/scratch_files.h"

namespace hdpsim::fuzz {
namespace {

constexpr std::int64_t most_steps = 4;
constexpr std::size_t most_candidates_here = 16;

void require_sane_replay(const ReplayResult& result) {
  for (const PlanSummary& plan : result.summary.plans) {
    require(plan.mean_s > 0, "step time", "a replay's mean");
    require_number(plan.mean_s, result.summary.best_mean_s * (1 - 1e-9), "best plan");
    require_number(plan.speedup, 0, "speed-up");
  }
}

void require_sane_tuning(const TuneResult& result) {
  double best = 0;
  for (const TunedCandidate& candidate : result.candidates) {
    if (candidate.fate != TunedCandidate::Fate::finished) continue;
    require(candidate.time_s > 0, "step time", candidate.text);
    require_number(candidate.bound_s, 0, "bound");
    require_number(candidate.device_gb, 0, "memory");
    require_number(candidate.mfu, 0, "MFU");
    if (best == 0) best = candidate.time_s;
  }
  require(best > 0, "tuning", "nothing is finished");
}

/// Every candidate that can run at all is small, and few they are.
bool is_affordable_search(const Study& study, const Value& root, Catalog& catalog) {
  const std::vector<Candidate> candidates = candidates_of(study, root);
  if (candidates.size() > most_candidates_here) return false;
  Evaluator evaluator(candidates, catalog);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    try {
      const Study candidate = evaluator.study_of(i);
      if (!is_affordable(candidate) || candidate.points.front().spec.steps > most_steps) return false;
    } catch (const InputError&) {  // it is named as one that cannot run
    }
  }
  return true;
}

Outcome run_replay(std::string_view input) {
  return replay_sanely(input, {}) ? Outcome::accepted : Outcome::skipped;
}

Outcome run_tune(std::string_view input) {
  return tune_sanely(input, {}) ? Outcome::accepted : Outcome::skipped;
}

}  // namespace

std::optional<ReplayResult> replay_sanely(std::string_view text, const JournalFolder& kept) {
  const Study study = study_of(text);
  const StudyPoint& point = study.points.front();
  if (!is_affordable(study) || point.spec.steps > most_steps * most_steps) return std::nullopt;
  auto result = replay(study, point, {.steps = point.spec.steps, .kept = kept, .version = "0"});
  require_sane_replay(*result);
  require_json(replay_json(*result, study.resolved, "0"));
  (void)replay_table(*result);
  (void)replay_page(*result);
  return result;
}

std::optional<TuneResult> tune_sanely(std::string_view text, const JournalFolder& kept) {
  const std::string file = file_with("study.yaml", text);
  Catalog catalog = shipped_catalog();
  const Study study = load_study(file, {}, catalog);
  Diagnostics none;
  const Value root = tuning_root(load_document(file, none), {});
  if (!is_affordable_search(study, root, catalog)) return std::nullopt;
  auto result = tune(study, root, catalog, {.kept = kept, .version = "0"});
  require_sane_tuning(*result);
  require_json(tune_json(*result, study.tune.price, study.resolved, "0"));
  require_csv(tune_csv(*result, study.tune.price));
  (void)tune_table(*result, study.tune.price);
  (void)tune_page(*result, study.tune.price);
  return result;
}

std::vector<Target> search_targets() {
  return {
      {"replay_run", ".yaml", 5, longest_simulation, {}, run_replay},
      {"tune_run", ".yaml", 3, longest_simulation, {}, run_tune},
  };
}

}  // namespace hdpsim::fuzz
