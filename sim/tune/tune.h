#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/document/journal.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"
#include "sim/tune/tune_progress.h"
#include "sim/tune/tune_space.h"

namespace hdpsim {

struct TuneRun {
  std::size_t jobs = 1;                               ///< Threads; results do not depend on their number.
  JournalFolder kept{};                               ///< Where evaluations are kept.
  std::string version{};                              ///< Evaluations of another version are refused.
  std::function<bool()> stop = [] { return false; };  ///< Asked before every simulation, from any thread.
  std::function<double()> clock{};  ///< Seconds since any time, for the time left alone; none: that is not known.
  std::function<void(const TuneProgress&)> report = [](const TuneProgress&) {};  ///< Called by one thread at a time.
};

/// What a tuning learnt about a candidate.
struct TunedCandidate {
  std::size_t number = 0;  ///< Index into the space.
  std::string text;        ///< Its choices.
  std::string plan;        ///< Its policy.
  enum class Fate {
    finished,    ///< Simulated over all steps.
    slower,      ///< Dropped for its time on the steps that it was simulated on.
    bounded,     ///< A lower bound of its time, of its plan or in closed form, is already too slow.
    infeasible,  ///< Cannot run, for `reason`.
  };
  Fate fate = Fate::infeasible;
  std::string reason;
  std::int64_t gpus = 0;
  std::int64_t capacity = 0;
  std::int64_t steps = 0;  ///< Steps simulated in the study's fidelity.
  double bound_s = 0;      ///< Lower bound of the probe step: in closed form, or of its plan alone.
  /// Mean step time. For a candidate that was not simulated over all steps it is the winner's time, multiplied by its
  /// ratio on the steps that both were simulated on; for a bounded one by the ratio of its bound on the probe step.
  double time_s = 0;
  double ratio = 1;     ///< Its time relative to the winner's ...
  double ratio_p5 = 1;  ///< ... step by step, over those steps.
  double ratio_p95 = 1;
  double mfu = 0;
  double device_gb = 0;          ///< Memory of the fullest device in those steps, ...
  double device_at_most_gb = 0;  ///< ... and with the largest gaps of the allocator (with_largest_gaps()).
  bool is_at_risk = false;       ///< It may not fit: MemoryFit::at_risk.
  double gpu_hours_per_gigatoken = 0;
  bool on_front = false;
  bool best_of_plan = false;  ///< The best candidate of its policy; simulated over all steps.
};

/// The result of a search.
struct TuneResult {
  std::string study;
  std::string setting;
  std::string profile;
  std::int64_t steps = 0;
  std::int64_t probe = 0;                  ///< The step on which all candidates were compared.
  std::vector<TunedCandidate> candidates;  ///< Best first, those that cannot run at the end.
  std::int64_t planned_steps = 0;          ///< Steps of which only the plan was looked at.
  std::int64_t closed_form_steps = 0;      ///< Steps simulated in closed form.
  std::int64_t full_steps = 0;             ///< Steps simulated in the study's fidelity.
  std::int64_t feasible = 0;
  double device_memory_gb = 0;
  Value winner;  ///< A complete study with the best candidate as its only plan.
};

/// The study from which candidates are made: as written, with the overrides, without the mechanisms of `without`, and
/// with all paths absolute. Requires a study that was read without a problem.
[[nodiscard]] Value tuning_root(Value written, const std::vector<std::string>& overrides,
                                const std::vector<std::string>& without = {});

/// The text of everything that the result of tune() depends on, besides the version of the program: the candidates, the
/// files behind their values, and the rules of the search. What a study says of its own mesh is in it only as far as
/// candidates keep that. InputError as for tune().
[[nodiscard]] std::string tuning_identity(const Study& study, const Value& root, Catalog& catalog);

/// Searches for the best candidate, coarse to fine: each stage looks closer at what the one before has left.
///
/// 1. Candidates that cannot run are excluded: by the study's own checks, and by the memory of their plans.
/// 2. The plan of the probe step, the one with the median work of attention, gives all others a lower bound: what its
///    busiest rank works. Those that by it may be among the best of their policy run that step in closed form. No
///    traffic shares a link there, so that it is a lower bound of the full simulation. Candidates near the best closed
///    forms are joined by others that differ from them in their schedule and placement, in how groups share a sequence
///    and in what is sharded (Refinement); those that cannot run are left out.
/// 3. The full simulation follows in ascending order of these bounds, until a bound is `near` above the time of the
///    `keep`-th best (branch and bound: Lawler and Wood, "Branch-and-bound methods: a survey", Operations Research 14,
///    1966). `near` (search_rules.h) allows for candidates that are better on other steps than on the probe.
/// 4. Successive halving (Jamieson and Talwalkar, AISTATS 2016) on the number of steps: 2, 4, 8, ... all; after each
///    round the better half stays, at least `keep`. All candidates see the same batches, so that few steps suffice.
/// 5. A policy none of whose candidates has come that far gets a search of its own, of stages 3 and 4 for one place, so
///    that the best candidate of every policy is simulated over all steps: speed-ups can be stated between meshes that
///    are each the best of their plan.
///
/// The front holds the candidates that no other one beats in step time, memory and GPUs together, with memory counted
/// in twentieths of a device (so that it is not a list of all: epsilon-dominance, Laumanns et al. 2002). Members that
/// were not simulated until then are simulated on the probe step, and pipelines on the front with all schedules and
/// placements.
///
/// `root` comes from tuning_root(). Empty if it was stopped: finished evaluations are in the journal, and results do
/// not depend on how often that happened. InputError if no candidate can run, or as for Journal::resume(); MachineError
/// if a file cannot be written.
[[nodiscard]] std::optional<TuneResult> tune(const Study& study, const Value& root, Catalog& catalog,
                                             const TuneRun& run);

}  // namespace hdpsim
