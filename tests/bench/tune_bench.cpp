// What a tuning takes a candidate: the bound of its plan, its step in closed form, and a small search as a whole.

#include <benchmark/benchmark.h>

#include <optional>

#include "sim/study/override.h"
#include "sim/study/study_paths.h"
#include "sim/tune/evaluation.h"
#include "sim/tune/tune.h"

namespace hdpsim {
namespace {

/// LLaMA-7B on GPUs with 32Ki tokens each: the space that a tuning has by default.
struct Space {
  Catalog catalog{HDPSIM_SOURCE_DIR};
  Study study;
  Value root;

  explicit Space(std::int64_t gpus, const std::vector<std::string>& more = {}) {
    const std::string path = HDPSIM_SOURCE_DIR "/configs/studies/sharing.yaml";
    std::vector<std::string> overrides = {"sweep={}", "data.steps=1", "cluster.gpus=" + std::to_string(gpus),
                                          "data.tokens_per_step=" + std::to_string(gpus * 32) + "Ki"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    study = load_study(path, overrides, catalog);
    Diagnostics none;
    root = tuning_root(load_document(path, none), overrides);
  }
};

/// Candidates from all over the space, one after the other.
void evaluate(benchmark::State& state, Fidelity fidelity) {
  Space space(state.range(0));
  const std::vector<Candidate> candidates = candidates_of(space.study, space.root);
  Evaluator evaluator(candidates, space.catalog);
  constexpr std::size_t apart = 37;
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(evaluator.evaluate({.candidate = next, .fidelity = fidelity, .steps = {0}}));
    next = (next + apart) % candidates.size();
  }
}

void bound_of_a_candidate(benchmark::State& state) {
  evaluate(state, Fidelity::plan);
}
BENCHMARK(bound_of_a_candidate)->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond);

void closed_form_of_a_candidate(benchmark::State& state) {
  evaluate(state, Fidelity::closed_form);
}
BENCHMARK(closed_form_of_a_candidate)->Arg(64)->Arg(512)->Unit(benchmark::kMillisecond);

void tuning(benchmark::State& state) {
  Space space(state.range(0), {"tune={space: {mesh.tp: [1, 2, 4], mesh.pp: [1, 2, 4], mesh.capacity: [8Ki, auto]}}"});
  for (auto _ : state) {
    const std::optional<TuneResult> result = tune(space.study, space.root, space.catalog, {});
    state.counters["candidates"] = static_cast<double>(result->candidates.size());
  }
}
BENCHMARK(tuning)->Arg(64)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hdpsim
