// The event queue alone, and one step of the published 7B workload: fluid from 1,024 to 65,536 GPUs, exact with and
// without the queue for rings of whose messages no two meet, with NICs for every GPU and shared ones, and loops over
// layers that copy activations to the host. What it costs to price the work of a model for the planners of a study.

#include <benchmark/benchmark.h>

#include "sim/base/random.h"
#include "sim/cluster/cluster_config.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/impl/simulation.h"
#include "sim/engine/simulator.h"
#include "sim/engine/world.h"
#include "sim/model/model_config.h"
#include "sim/plan/planner.h"
#include "sim/profile/profile_file.h"
#include "sim/study/study.h"
#include "sim/trace/trace.h"
#include "tests/support/planner_of.h"

namespace hdpsim {
namespace {

// A queue that always holds `pending` events: each event that runs schedules one within the next second of simulated
// time.
void event_queue(benchmark::State& state) {
  const auto pending = static_cast<std::uint32_t>(state.range(0));
  RandomStream random(1, "event queue bench");
  std::vector<Duration> delays(1 << 16);
  for (Duration& delay : delays)
    delay = Duration::picoseconds(static_cast<std::int64_t>(random.below(1'000'000'000'000)));
  EventQueue queue;
  for (std::uint32_t i = 0; i < pending; ++i) queue.schedule_after(delays[i % delays.size()], i, 0);
  for (auto _ : state) {
    const Event event = queue.pop();
    queue.schedule_after(delays[queue.executed() % delays.size()], event.actor, event.tag);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(event_queue)->Arg(1000)->Arg(1'000'000);

// LLaMA-7B at 2Mi context on GitHub lengths, 32Mi tokens a step for every 1,024 GPUs, tp 2.
struct Workload {
  explicit Workload(std::int64_t gpus, const std::string& policy = "hdp-balance", int nics_per_node = 8) {
    const std::string root = HDPSIM_SOURCE_DIR;
    Diagnostics problems;
    const std::string cluster_text =
        "{preset: a100-rail-3tier, gpus: " + std::to_string(gpus) +
        ", tiers: {core: {fan_in: 64}}, node: {nics: {count: " + std::to_string(nics_per_node) + "}}}";
    const auto cluster =
        read_cluster(parse_document("cluster", cluster_text, problems), root + "/configs/clusters", problems);
    const auto profile = load_profile("bytescale-implied", root + "/calib/profiles", {}, problems);
    options.model = *load_model(root + "/configs/models/llama-7b.json", problems);
    options.mesh = {.hdp = gpus / 2, .tp = 2, .pp = 1};
    world = World::make(*cluster, *profile, {.mesh = options.mesh}, problems);
    problems.throw_if_any();
    const std::int64_t context = 2 << 20;
    const auto batches = make_batches(Lengths{nullptr, load_preset("github", root + "/traces")},
                                      {.context = context, .tokens_per_step = (32 << 20) * (gpus / 1024)});
    const PlanningContext planning{.ranks = options.mesh.hdp,
                                   .ranks_per_node = world->job().ranks_per_node(),
                                   .capacity = 8192,
                                   .context = context,
                                   .layers = options.model.layers,
                                   .work = world->job().work_model(options, 8192),
                                   .host_tokens = 65536};
    plan = test::planner_of(parse_document("bench", policy, problems), planning, problems)->plan(batches->step(0), 0);
  }

  LoweringOptions options;
  std::unique_ptr<World> world;
  Plan plan;
};

void fluid_step(benchmark::State& state) {
  Workload workload(state.range(0));
  const Program program(workload.plan, workload.options);
  std::uint64_t events = 0;
  for (auto _ : state) events = simulate(program, workload.world->machine(), Grain::fluid).events;
  state.counters["micro-batches"] = static_cast<double>(workload.plan.micro_batches.size());
  state.counters["events"] = static_cast<double>(events);
  state.SetComplexityN(state.range(0));
}
BENCHMARK(fluid_step)
    ->RangeMultiplier(4)
    ->Range(1 << 10, 1 << 16)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNLogN);

// Micro-batches whose layers do not only follow each other: a layer waits for the copy of an earlier one.
void fluid_step_offloading(benchmark::State& state) {
  Workload workload(1 << 10, "hdp-naive: {offload: auto}");
  const Program program(workload.plan, workload.options);
  for (auto _ : state) benchmark::DoNotOptimize(simulate(program, workload.world->machine(), Grain::fluid));
}
BENCHMARK(fluid_step_offloading)->Unit(benchmark::kMillisecond);

// 256 experts on 64 GPUs, 16 stages, four points.
void read_study_of_experts(benchmark::State& state) {
  const std::string root = HDPSIM_SOURCE_DIR;
  for (auto _ : state) {
    Catalog catalog(root);
    benchmark::DoNotOptimize(load_study(root + "/configs/studies/deepseek-v3.yaml", {}, catalog));
  }
}
BENCHMARK(read_study_of_experts)->Unit(benchmark::kMillisecond);

// Rings of 256 ranks that all share NICs: each layer adds and removes 512 flows that change their rates together.
void fluid_step_shared_nics(benchmark::State& state) {
  Workload workload(state.range(0), "static", 4);
  const Program program(workload.plan, workload.options);
  for (auto _ : state) benchmark::DoNotOptimize(simulate(program, workload.world->machine(), Grain::fluid));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(fluid_step_shared_nics)
    ->RangeMultiplier(4)
    ->Range(1 << 10, 1 << 14)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oNLogN);

// (GPUs, 1 if everything goes through the event queue)
void exact_step(benchmark::State& state, const char* policy, int nics_per_node) {
  Workload workload(state.range(0), policy, nics_per_node);
  const Program program(workload.plan, workload.options);
  std::uint64_t events = 0;
  for (auto _ : state) {
    events += Simulation(program, workload.world->machine(), Grain::exact, {}, state.range(1) == 1).run().events;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(events));
}
BENCHMARK_CAPTURE(exact_step, own_nics, "hdp-balance", 8)
    ->ArgsProduct({{1 << 10, 1 << 12}, {0, 1}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(exact_step, long_rings, "static", 8)
    ->Args({1 << 10, 0})
    ->Args({1 << 12, 0})
    ->Unit(benchmark::kMillisecond);
// Rings of 256 ranks of two GPUs; every two GPUs share a NIC.
BENCHMARK_CAPTURE(exact_step, shared_nics, "static", 4)
    ->Args({1 << 10, 0})
    ->Args({1 << 10, 1})
    ->Args({1 << 12, 0})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace hdpsim
