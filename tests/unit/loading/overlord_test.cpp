// What OVERLORD (arXiv 2504.09844) reports of loaders. It publishes neither bytes of an open source nor rates: these
// are the longest range that Arrow reads ahead by default (32 MiB), four processes a loader, and the memory of an idle
// Python with PyTorch 1.13 that processes do not share (115 MB). None was chosen by a result.
#include "sim/loading/loaded_run.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

LoadingSpec loaders_of(LoaderStyle style, std::int64_t sources) {
  LoadingSpec spec;
  spec.style = style;
  spec.bytes_per_token = Bytes(4);
  spec.tokens_per_s = 3e6;
  spec.processes = 4;
  spec.process_memory = Bytes(115'000'000);
  spec.whole_batch = style != LoaderStyle::spmd;
  SourceSpec& source = spec.sources.emplace_back();
  source.name = "source";
  source.count = sources;
  source.access = Bytes(32 << 20);
  return spec;
}

// PP 9, CP 2 and TP 4 as on its 576 GPUs, of which half have half as many replicas.
LoadingJob job_on(std::int64_t gpus) {
  const std::int64_t ranks = gpus / 36;
  const std::int64_t tokens = 4 << 20;
  return {.ranks = ranks,
          .devices_per_rank = 36,
          .nodes = gpus / 8,
          .tokens = tokens,
          .largest_share = tokens / ranks,
          .samples = 1000};
}

// The memory of the whole job, in bytes.
double memory_of(const LoadingSpec& spec, const LoadingJob& job) {
  return static_cast<double>(loading_memory(spec, job).count()) * static_cast<double>(job.devices());
}

double memory_ratio(std::int64_t sources, std::int64_t gpus, bool each_device) {
  LoadingSpec spmd = loaders_of(LoaderStyle::spmd, sources);
  spmd.each_device = each_device;
  return memory_of(spmd, job_on(gpus)) / memory_of(loaders_of(LoaderStyle::actors, sources), job_on(gpus));
}

TEST_CASE("with 306 sources the published 13.5 lies between a loader a rank and a loader a GPU", "[overlord]") {
  for (const std::int64_t gpus : {288, 576}) {
    CHECK(memory_ratio(306, gpus, false) > 1);
    CHECK(memory_ratio(306, gpus, false) < 13.5);
    CHECK(memory_ratio(306, gpus, true) > 13.5);
  }
}

TEST_CASE("memory of loaders a rank grows with sources and ranks, of loaders a source hardly with ranks",
          "[overlord]") {
  LoadingSpec spmd = loaders_of(LoaderStyle::spmd, 306);
  spmd.each_device = true;
  // From 5 to 306 sources: all but the processes and the batches is 61 times as much.
  const double growth = memory_of(spmd, job_on(576)) / [] {
    LoadingSpec few = loaders_of(LoaderStyle::spmd, 5);
    few.each_device = true;
    return memory_of(few, job_on(576));
  }();
  CHECK(growth == Approx(4 * (306 * 33.55e6 + 115e6) / (4 * (5 * 33.55e6 + 115e6))).epsilon(0.01));
  CHECK(memory_of(spmd, job_on(576)) / memory_of(spmd, job_on(288)) == Approx(2).epsilon(0.01));
  const LoadingSpec actors = loaders_of(LoaderStyle::actors, 306);
  CHECK(memory_of(actors, job_on(576)) / memory_of(actors, job_on(288)) < 1.1);
}

TEST_CASE("disaggregation alone shortens no step: both kinds of loaders hide behind it", "[overlord]") {
  for (const LoaderStyle style : {LoaderStyle::spmd, LoaderStyle::actors}) {
    LoadingSpec spec = loaders_of(style, 306);
    spec.network = 25_GBps;
    spec.planner = 50_ms;
    const LoadedStep step{loading_stages(spec, job_on(576)), 16_s, job_on(576)};
    CHECK(loaded_course(spec, std::vector(6, step)).waits == std::vector<Duration>(6, 0_s));
  }
}

// What its ablation calls the ratio of effective training time, 1.08 times that without shadows: the scenario is not
// published, the relation is that of time without stalls.
TEST_CASE("shadows win the time of the stalls: deaths x (restart + replay - what is loaded ahead)", "[overlord]") {
  LoadingSpec spec = loaders_of(LoaderStyle::actors, 10);
  spec.tokens_per_s.reset();
  LoaderDeaths deaths;
  deaths.mtbf_s = 200'000;  // 10 loaders: one each 20,000 s, 2,000 steps
  deaths.restart = 200_s;
  spec.deaths = deaths;
  const LoadingJob job = job_on(576);
  std::vector<LoadedStep> steps;
  for (std::int64_t i = 0; i < 20'000; ++i) {
    steps.push_back({loading_stages(spec, job), 10_s, job});
    steps.back().job.step = i;
  }
  const LoadedCourse course = loaded_course(spec, steps);
  double stalls_s = 0;
  for (const Duration wait : course.waits) stalls_s += wait.seconds();
  const auto died = static_cast<double>(course.events.size());
  REQUIRE(died > 2);
  // Two batches are there, and the step that runs is on the way.
  CHECK(stalls_s >= died * (200 - 3 * 10));
  CHECK(stalls_s <= died * (200 - 2 * 10));
  spec.deaths->shadows = 1;
  for (const Duration wait : loaded_course(spec, steps).waits) REQUIRE(wait == 0_s);
}

}  // namespace
}  // namespace hdpsim
