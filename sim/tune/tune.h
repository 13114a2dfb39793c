#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/seal.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"
#include "sim/tune/tune_space.h"

namespace hdpsim {

/// How far a tuning is.
struct TuneProgress {
  std::string stage;
  std::int64_t candidates = 0;
  std::int64_t left = 0;   ///< Of them, still in the running.
  std::int64_t steps = 0;  ///< Simulated so far, in any grain.
  std::int64_t done = 0;
  std::int64_t most = 0;  ///< What `done` can become.
};

struct TuneRun {
  std::size_t jobs = 1;                               ///< Threads; results do not depend on their number.
  std::filesystem::path folder{};                     ///< Where search.jsonl grows; empty: nowhere.
  bool resume = false;                                ///< Go on with the evaluations in the folder.
  TellDamage damaged = [](const Diagnostic&) {};      ///< Of those that are damaged and simulated again.
  std::string version{};                              ///< Evaluations of another version are refused.
  std::function<bool()> stop = [] { return false; };  ///< Asked before every simulation, from any thread.
  std::function<void(const TuneProgress&)> report = [](const TuneProgress&) {};  ///< Called by one thread at a time.
};

/// What a tuning learnt of a candidate.
struct TunedCandidate {
  std::size_t number = 0;  ///< Index into the space.
  std::string text;        ///< Its choices.
  enum class Fate {
    finished,    ///< Simulated over all steps.
    slower,      ///< Left behind on the steps that it was simulated on.
    bounded,     ///< Its closed form, which nothing can undercut, is already slower.
    infeasible,  ///< Cannot run; `reason` says why.
  };
  Fate fate = Fate::infeasible;
  std::string reason;
  std::int64_t gpus = 0;
  std::int64_t capacity = 0;
  std::int64_t steps = 0;  ///< Simulated in the grain of the study.
  double bound_s = 0;      ///< Its closed form on the probe step.
  /// Mean step time. Of one that was not simulated over all steps: the winner's, times how much longer it takes on the
  /// steps that both were simulated on; of one that was bounded, on the probe step by its bound.
  double time_s = 0;
  double ratio = 1;     ///< Of that to the winner's ...
  double ratio_p5 = 1;  ///< ... step by step, over those steps.
  double ratio_p95 = 1;
  double mfu = 0;
  double device_gb = 0;  ///< The fullest device of those steps.
  double gpu_hours_per_gigatoken = 0;
  bool on_front = false;
};

/// What a search came to.
struct TuneResult {
  std::string study;
  std::string setting;
  std::string profile;
  std::int64_t steps = 0;
  std::int64_t probe = 0;                  ///< The step on which all candidates were compared.
  std::vector<TunedCandidate> candidates;  ///< Best first, those that cannot run at the end.
  std::int64_t closed_form_steps = 0;      ///< Simulated.
  std::int64_t full_steps = 0;             ///< Simulated in the grain of the study.
  std::int64_t feasible = 0;
  double device_memory_gb = 0;
  Value winner;  ///< A complete study with the best candidate as its only plan.
};

/// What candidates of a study are made of: the study as it was written, with the overrides and with all paths absolute.
/// The study is one that was read without a problem.
[[nodiscard]] Value tuning_root(Value written, const std::vector<std::string>& overrides);

/// Looks for the best candidate. Three stages, each on what the one before has left:
///
/// 1. Candidates that cannot run are named: the study's own checks, and memory.
/// 2. All others run the probe step, that with the median work of attention, in closed form. Nobody shares a link
///    there, so that it is a lower bound of the full simulation; in ascending order of these bounds the full
///    simulation follows, until a bound is `slack` above the time of the `keep`-th best (branch and bound: Lawler and
///    Wood, "Branch-and-bound methods: a survey", Operations Research 14, 1966). `slack` allows for candidates that
///    are better on other steps than on the probe.
/// 3. Successive halving (Jamieson and Talwalkar, AISTATS 2016) on the number of steps: 2, 4, 8, ... all; after each
///    round the better half stays, `keep` at least. All candidates see the same batches, so that few steps tell.
///
/// The front holds what no other candidate beats in step time, memory and GPUs together, memory being counted in
/// twentieths of a device (so that it is not a list of all: epsilon-dominance, Laumanns et al. 2002). Its members that
/// are too slow for stage 3 are simulated on the probe step.
///
/// `root` is that of tuning_root(). Nothing if it was stopped: what was evaluated is in the
/// folder, and results do not depend on how often that happened. InputError if nothing can run, or as
/// SearchJournal::resume(); MachineError if a file cannot be written.
[[nodiscard]] std::optional<TuneResult> tune(const Study& study, const Value& root, Catalog& catalog,
                                             const TuneRun& run);

}  // namespace hdpsim
