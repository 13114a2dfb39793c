#include "sim/tune/tune.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "sim/run/runner.h"
#include "sim/study/override.h"
#include "sim/study/sharing_choice.h"
#include "sim/study/study_paths.h"
#include "sim/tune/evaluation.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Overrides = std::vector<std::string>;
using Fate = TunedCandidate::Fate;

/// A shipped study with its space.
struct Tuning {
  Catalog catalog{HDPSIM_SOURCE_DIR};
  Study study;
  Value root;

  explicit Tuning(const Overrides& overrides = {}) {
    const std::string path = HDPSIM_SOURCE_DIR "/configs/studies/tune.yaml";
    study = load_study(path, overrides, catalog);
    Diagnostics none;
    root = load_document(path, none);
    apply_overrides(root, overrides, none);
    make_paths_absolute(root);
  }
  TuneResult result(std::size_t jobs = 2) {
    auto found = tune(study, root, catalog, {.jobs = jobs});
    REQUIRE(found);
    return *found;
  }
};

// Parts of the shipped space as candidates_of() makes it, of small steps: with one sharing and one level of ZeRO.
const Overrides without_refinements = {
    "data.tokens_per_step=512Ki", "data.context=64Ki", "data.steps=8",
    "tune.space={mesh.tp: [2, 4], mesh.pp: [1, 2], mesh.capacity: [8Ki, 16Ki, auto], training.recompute: [none], "
    "mesh.schedule: [1f1b, zb-h1, zb-v, dualpipe], mesh.placement: [contiguous, strided], mesh.cp_comm_type: [p2p], "
    "mesh.zero: [1]}"};
const Overrides without_pipelines = {
    "data.tokens_per_step=512Ki", "data.context=64Ki", "data.steps=4",
    "tune.space={mesh.tp: [1, 2, 4], mesh.pp: [1], mesh.capacity: [8Ki, 16Ki, auto], training.recompute: [none], "
    "mesh.cp_comm_type: [p2p], mesh.zero: [1]}"};

/// What every candidate that can run takes, by its text, when all of its steps are simulated in full.
std::map<std::string, RunMetrics> exhaustive(Tuning& tuning) {
  std::map<std::string, RunMetrics> found;
  for (const Candidate& candidate : candidates_of(tuning.study, tuning.root)) {
    try {
      const Study study = read_study(candidate.study, tuning.catalog);
      const auto runs = run_study(study, {.jobs = 2});
      REQUIRE(runs);
      if (runs->front().metrics.fits) found[candidate.text] = runs->front().metrics;
    } catch (const InputError&) {
    }
  }
  return found;
}

double least_time(const std::map<std::string, RunMetrics>& runs) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [text, metrics] : runs) least = std::min(least, metrics.step_time_s.mean);
  return least;
}

// Only those of a policy, with which their text ends, but for its options.
std::map<std::string, RunMetrics> of_plan(std::map<std::string, RunMetrics> runs, const std::string& plan) {
  std::erase_if(runs, [&](const auto& run) { return run.first.find(", " + plan) == std::string::npos; });
  return runs;
}

// In less of a large space: tests/figures has what README states of the whole one.
TEST_CASE("tuning finds what exhaustive search finds, in a third of its simulations", "[tune]") {
  Tuning tuning(without_refinements);
  const TuneResult result = tuning.result();
  const auto all = exhaustive(tuning);
  const TunedCandidate& best = result.candidates.front();
  CHECK(best.fate == Fate::finished);
  CHECK(best.time_s == Approx(all.at(best.text).step_time_s.mean).epsilon(1e-9));
  CHECK(best.time_s <= least_time(all) * (1 + 1e-9));
  CHECK(result.feasible >= std::ssize(all));  // memory of steps that were not looked at may be too small
  const std::int64_t exhaustive_steps = std::ssize(all) * result.steps;
  INFO(result.closed_form_steps << " + " << result.full_steps << " of " << exhaustive_steps);
  CHECK(3 * (result.closed_form_steps + result.full_steps) <= exhaustive_steps);
  for (const std::string plan : {"static", "hdp-naive", "hdp-balance"}) {
    CAPTURE(plan);
    const auto is_its_best = [&](const TunedCandidate& each) { return each.plan == plan && each.best_of_plan; };
    REQUIRE(std::count_if(result.candidates.begin(), result.candidates.end(), is_its_best) == 1);
    const auto found = std::find_if(result.candidates.begin(), result.candidates.end(), is_its_best);
    CHECK(found->fate == Fate::finished);
    CHECK(found->time_s == Approx(all.at(found->text).step_time_s.mean).epsilon(1e-9));
    CHECK(found->time_s <= least_time(of_plan(all, plan)) * (1 + 1e-9));
  }
}

// The least time of a space of meshes over every sharing and level of ZeRO, all steps in full.
double least_time_of_all(Tuning& tuning) {
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : candidates_of(tuning.study, tuning.root)) {
    for (const auto& [exchange, cut] : allowed_sharings(tuning.study.points[0].spec)) {
      for (const char* zero : {"0", "1", "2", "3"}) {
        Value study = candidate.study;
        Value& mesh = *study.find("mesh");
        mesh.set("cp_comm_type", Value::scalar(std::string(word_of(exchange))));
        mesh.set("cp_cut", Value::scalar(std::string(word_of(cut))));
        mesh.set("zero", Value::scalar(zero));
        const auto runs = run_study(read_study(std::move(study), tuning.catalog), {});
        if (runs->front().metrics.fits) least = std::min(least, runs->front().metrics.step_time_s.mean);
      }
    }
  }
  return least;
}

TEST_CASE("how groups share a sequence and what is sharded belong to the space that nobody gave", "[tune]") {
  const std::string meshes = "mesh.tp: [2, 4], mesh.pp: [1], mesh.capacity: [8Ki], training.recompute: [none]";
  const Overrides small = {"data.steps=2", "data.context=64Ki", "plans=[static]", "tune.space={" + meshes + "}"};
  Tuning tuning(small);
  const TuneResult result = tuning.result();
  const TunedCandidate& best = result.candidates.front();
  CHECK(best.time_s <= 1.005 * least_time_of_all(tuning));
  CHECK_THAT(best.text, Catch::Contains(", cp_comm_type "));  // rings are not the fastest here
  CHECK(result.winner.find("mesh")->find("cp_comm_type")->text != "p2p");
  const auto has = [&](const std::string& text) {
    return std::any_of(result.candidates.begin(), result.candidates.end(),
                       [&](const TunedCandidate& each) { return each.text.find(text) != std::string::npos; });
  };
  CHECK(has(", cp_cut dispatch"));
  CHECK(has(", zero 3"));

  Overrides given = small;
  given.back() = "tune.space={" + meshes + ", mesh.cp_comm_type: [p2p, all_gather], mesh.zero: [1]}";
  for (const TunedCandidate& each : Tuning(given).result().candidates) {
    CHECK_THAT(each.text, !Catch::Contains("a2a") && !Catch::Contains("cp_cut") && !Catch::Contains("zero"));
  }
}

TEST_CASE("what fits only with all states sharded is found", "[tune]") {
  Tuning tuning({"data.steps=1", "model={preset: llama-30b}", "plans=[static]",
                 "tune.space={mesh.tp: [2], mesh.pp: [1], mesh.capacity: [8Ki], training.recompute: [none]}"});
  const TuneResult result = tuning.result();
  CHECK(result.candidates.back().fate == Fate::infeasible);
  CHECK_THAT(result.candidates.back().reason, Catch::Contains("does not fit"));
  CHECK_THAT(result.candidates.front().text, Catch::Contains("zero 3"));
  CHECK(result.candidates.front().fate == Fate::finished);
}

TEST_CASE("the closed form of a step is never above its full simulation", "[tune]") {
  Overrides one_step = without_pipelines;
  one_step.emplace_back("data.steps=1");
  Tuning tuning(one_step);
  const std::vector<Candidate> space = candidates_of(tuning.study, tuning.root);
  std::int64_t compared = 0;
  for (const TunedCandidate& candidate : tuning.result().candidates) {
    if (candidate.fate == Fate::infeasible) continue;
    const Study study = read_study(space[candidate.number].study, tuning.catalog);
    const auto runs = run_study(study, {});
    CAPTURE(candidate.text);
    CHECK(candidate.bound_s <= runs->front().metrics.step_time_s.mean * (1 + 1e-12));
    ++compared;
  }
  CHECK(compared > 30);
}

// Of the probe step, in a space with every way to run a pipeline and to compute again.
TEST_CASE("what the busiest rank of a plan works is never above the closed form, which is never above the step",
          "[tune]") {
  Tuning tuning(
      {"data.tokens_per_step=512Ki", "data.context=64Ki", "data.steps=1",
       "tune.space={mesh.tp: [1, 4], mesh.pp: [1, 2, 4], mesh.schedule: [1f1b, zb-h1, zb-v, dualpipe], "
       "mesh.placement: [contiguous, strided], mesh.capacity: [8Ki, auto], training.recompute: [none, full]}"});
  const std::vector<Candidate> space = candidates_of(tuning.study, tuning.root);
  Evaluator evaluator(space, tuning.catalog);
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < space.size(); ++i) {
    CAPTURE(space[i].text);
    std::vector<Duration> times;
    std::optional<EvaluatedStep> closed_form;
    for (const Fidelity fidelity : {Fidelity::plan, Fidelity::closed_form, Fidelity::full}) {
      const Evaluation found = evaluator.evaluate({.candidate = i, .fidelity = fidelity, .steps = {0}});
      if (!found.problem.empty()) continue;
      times.push_back(found.results.front().time);
      if (fidelity == Fidelity::closed_form) closed_form = found.results.front();
    }
    if (closed_form) {  // a step whose links are all private is taken from it
      const Evaluation taken =
          evaluator.evaluate({.candidate = i, .fidelity = Fidelity::full, .steps = {0}, .closed_form = closed_form});
      CHECK(taken.results.front().time == times.back());
      CHECK(taken.results.front().device == closed_form->device);
    }
    CHECK((times.empty() || times.size() == 3));  // a plan tells as much of memory as its simulation
    CHECK(std::is_sorted(times.begin(), times.end()));
    compared += times.size() == 3;
  }
  CHECK(compared > 200);
}

/// The least sum of all steps in full, by policy, over a space that names every choice.
std::map<std::string, double> least_sums(const Overrides& overrides, std::size_t& candidates) {
  Tuning tuning(overrides);
  const std::vector<Candidate> space = candidates_of(tuning.study, tuning.root);
  candidates += space.size();
  Evaluator evaluator(space, tuning.catalog);
  std::vector<std::int64_t> steps(static_cast<std::size_t>(tuning.study.points[0].spec.steps));
  std::iota(steps.begin(), steps.end(), 0);
  std::map<std::string, double> least;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const Evaluation found = evaluator.evaluate({.candidate = i, .steps = steps});
    if (!found.problem.empty()) continue;
    double sum_s = 0;
    for (const EvaluatedStep& step : found.results) sum_s += seconds_of(step.time);
    const auto known = least.emplace(space[i].plan, sum_s).first;
    known->second = std::min(known->second, sum_s);
  }
  return least;
}

TEST_CASE("what a tuning tries near the best alone hides no winner of 2,000 candidates", "[tune]") {
  std::size_t candidates = 0;
  for (const std::string seed : {"1", "2"}) {
    CAPTURE(seed);
    const std::string meshes =
        "mesh.tp: [1, 2, 4], mesh.pp: [1, 2, 4], mesh.capacity: [8Ki, 16Ki], "
        "training.recompute: [none, full], mesh.cp_comm_type: [p2p], mesh.zero: [1]";
    const Overrides small = {"data.tokens_per_step=512Ki", "data.context=64Ki", "data.steps=1", "data.seed=" + seed};
    Overrides near = small;
    near.push_back("tune.space={" + meshes + "}");
    const TuneResult result = Tuning(near).result();
    Overrides all = small;
    all.push_back("tune.space={" + meshes +
                  ", mesh.schedule: [1f1b, zb-h1, zb-v, dualpipe], mesh.placement: [contiguous, strided], plans: "
                  "[static, {hdp-naive: {offload: auto}}, {hdp-naive: {offload: none}}, "
                  "{hdp-balance: {search: none, offload: auto}}, {hdp-balance: {search: none, offload: none}}]}");
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [plan, sum_s] : least_sums(all, candidates)) {
      CAPTURE(plan);
      const auto best = std::find_if(result.candidates.begin(), result.candidates.end(),
                                     [&](const auto& each) { return each.plan == plan && each.best_of_plan; });
      CHECK(best->time_s <= 1.02 * sum_s);
      least = std::min(least, sum_s);
    }
    CHECK(result.candidates.front().time_s <= (1 + 1e-9) * least);
  }
  CHECK(candidates >= 2000);
}

TEST_CASE("the ranking does not depend on the number of threads", "[tune]") {
  const TuneResult one = Tuning(without_pipelines).result(1);
  const TuneResult three = Tuning(without_pipelines).result(3);
  REQUIRE(one.candidates.size() == three.candidates.size());
  CHECK(one.full_steps == three.full_steps);
  for (std::size_t i = 0; i < one.candidates.size(); ++i) {
    CHECK(one.candidates[i].number == three.candidates[i].number);
    CHECK(one.candidates[i].time_s == three.candidates[i].time_s);
  }
}

/// Of the whole space, once for all tests.
const TuneResult& short_tuning() {
  static const TuneResult result = Tuning({"data.steps=2", "data.tokens_per_step=512Ki"}).result();
  return result;
}

TEST_CASE("every candidate that cannot run says why, and none that can", "[tune]") {
  const TuneResult& result = short_tuning();
  std::int64_t feasible = 0;
  for (const TunedCandidate& candidate : result.candidates) {
    CAPTURE(candidate.text, candidate.reason);
    CHECK((candidate.fate == Fate::infeasible) == !candidate.reason.empty());
    if (candidate.fate != Fate::infeasible) {
      ++feasible;
      CHECK(candidate.device_gb <= result.device_memory_gb);
    }
  }
  CHECK(feasible == result.feasible);
  CHECK(feasible < std::ssize(result.candidates));
}

TEST_CASE("no ranked candidate beats one on the front, and the best is on it", "[tune]") {
  const TuneResult& result = short_tuning();
  CHECK(result.candidates.front().on_front);
  const auto level = [&](const TunedCandidate& c) { return std::ceil(20 * c.device_gb / result.device_memory_gb); };
  for (const TunedCandidate& member : result.candidates) {
    if (!member.on_front) continue;
    CHECK(member.steps >= 1);  // a bound alone is no member
    for (const TunedCandidate& other : result.candidates) {
      if (other.fate == Fate::infeasible) continue;
      CHECK_FALSE((other.time_s < member.time_s && level(other) <= level(member) && other.gpus <= member.gpus));
    }
  }
}

TEST_CASE("the objective `cost` prefers fewer GPUs where they are used better", "[tune]") {
  const Overrides two_sizes = {"data.steps=2", "plans=[static, hdp-balance]",
                               "tune.space={cluster.gpus: [16, 32], mesh.tp: [2], mesh.pp: [1], mesh.capacity: [8Ki]}"};
  const TuneResult fast = Tuning(two_sizes).result();
  CHECK(fast.candidates.front().gpus == 32);
  Overrides cheap = two_sizes;
  cheap.emplace_back("tune.objective=cost");
  const TuneResult thrifty = Tuning(cheap).result();
  const auto fewest = [](const TuneResult& result) {
    double least = std::numeric_limits<double>::infinity();
    for (const TunedCandidate& c : result.candidates) {
      if (c.fate == Fate::finished) least = std::min(least, c.gpu_hours_per_gigatoken);
    }
    return least;
  };
  CHECK(thrifty.candidates.front().gpu_hours_per_gigatoken == fewest(thrifty));
  CHECK(thrifty.candidates.front().gpu_hours_per_gigatoken <= fast.candidates.front().gpu_hours_per_gigatoken);
  const TunedCandidate& best = fast.candidates.front();
  // GPU-hours of a billion tokens: a step has 2^20 of them.
  CHECK(best.gpu_hours_per_gigatoken == Approx(32 * best.time_s / 3600 * 1e9 / (1 << 20)));
}

TEST_CASE("a space in which nothing can run is wrong input that says why", "[tune]") {
  Tuning tuning({"data.steps=1",
                 "tune.space={mesh.tp: [1], mesh.pp: [1], mesh.capacity: [128Ki], training.recompute: [none], "
                 "plans: [static]}"});
  try {
    (void)tune(tuning.study, tuning.root, tuning.catalog, {});
    FAIL("it found one");
  } catch (const InputError& error) {
    CHECK_THAT(error.what(), Catch::Contains("none of the 1 candidates can run"));
    CHECK_THAT(error.what(), Catch::Contains("does not fit"));
  }
}

}  // namespace
}  // namespace hdpsim
