// What a training run waits for that asks for a plan in every step: hdp-balance with its search. The target: 4,096
// sequences in less than 10 ms.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "sim/run/live_planner.h"
#include "sim/study/study_paths.h"

namespace hdpsim {
namespace {

constexpr std::int64_t most_tokens = 128 << 10;

// As many tokens in every octave of lengths from 256 tokens to the longest (density 1 / s^2).
std::vector<std::int64_t> lengths_of(std::int64_t count, std::uint64_t seed) {
  constexpr double shortest = 256;
  RandomStream random(seed, "lengths of a run");
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < count; ++i) {
    const double tail = 1 - random.uniform() * (1 - shortest / static_cast<double>(most_tokens));
    lengths.push_back(std::llround(shortest / tail));
  }
  return lengths;
}

LivePlanner planner_for(std::int64_t ranks) {
  const std::string text = fmt::format(R"(name: run
cluster: {{preset: h100-rail, gpus: {}}}
model: {{preset: llama3-8b}}
profile: h100-published
data: {{lengths: {{preset: github}}, context: {}, tokens_per_step: 1Mi, steps: 1}}
mesh: {{tp: 1, pp: 1, capacity: 16Ki}}
plans: [hdp-balance]
)",
                                       ranks, most_tokens);
  Catalog catalog{HDPSIM_SOURCE_DIR};
  return {parse_study("bench", text, {}, catalog), 0, "hdp-balance", std::nullopt, "bench"};
}

void plan_of_a_live_step(benchmark::State& state) {
  constexpr std::uint64_t batches = 8;
  LivePlanner planner = planner_for(state.range(1));
  std::vector<std::vector<std::int64_t>> lengths;
  for (std::uint64_t seed = 1; seed <= batches; ++seed) lengths.push_back(lengths_of(state.range(0), seed));
  std::size_t next = 0;
  double estimate = 0;
  for (auto _ : state) estimate += planner.plan(lengths[next++ % batches], {}, {}).estimate_s;
  state.counters["step_s"] = estimate / static_cast<double>(next);
}
BENCHMARK(plan_of_a_live_step)
    ->ArgNames({"sequences", "ranks"})
    ->ArgsProduct({{256, 1024, 4096}, {64, 512}})
    ->Iterations(16)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hdpsim
