#include "sim/loading/loaded_run.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

// 1,024 GPUs in nodes of 8, two a rank; 32 million tokens of 4 bytes: 128 MB.
constexpr LoadingJob job{
    .ranks = 512, .devices_per_rank = 2, .nodes = 128, .tokens = 32'000'000, .largest_share = 100'000};

LoadingSpec loading(LoaderStyle style) {
  LoadingSpec spec;
  spec.style = style;
  spec.bytes_per_token = Bytes(4);
  return spec;
}

TEST_CASE("SPMD loaders read the whole batch once a rank, remote ones once", "[loading]") {
  LoadingSpec spmd = loading(LoaderStyle::spmd);
  spmd.storage = 64_GBps;
  CHECK(loading_stages(spmd, job) == std::vector<Duration>{1024_ms});  // 512 x 128 MB at 64 GB/s
  LoadingSpec remote = loading(LoaderStyle::remote);
  remote.storage = 64_GBps;
  CHECK(loading_stages(remote, job) == std::vector<Duration>{2_ms, 0_s, 0_s});
}

TEST_CASE("the four ranks of a node share its network", "[loading]") {
  LoadingSpec spmd = loading(LoaderStyle::spmd);
  spmd.network = 1_GBps;
  CHECK(loading_stages(spmd, job) == std::vector<Duration>{512_ms});  // 4 x 128 MB
  LoadingSpec remote = loading(LoaderStyle::remote);
  remote.network = 1_GBps;
  // A node's part of the reading is 1 MB, and its four clients fetch 400 kB each.
  CHECK(loading_stages(remote, job) == std::vector<Duration>{1_ms, 0_s, 1600_us});
}

TEST_CASE("every SPMD loader prepares every document; sources divide them", "[loading]") {
  for (const LoaderStyle style : {LoaderStyle::spmd, LoaderStyle::remote}) {
    LoadingSpec spec = loading(style);
    spec.tokens_per_s = 1e6;
    spec.processes = 8;
    CHECK(loading_stages(spec, job).front() == 4_s);
  }
}

TEST_CASE("host memory holds the batch in use and those loaded ahead", "[loading]") {
  LoadingSpec spec = loading(LoaderStyle::spmd);
  spec.prefetch = 3;
  CHECK(loading_memory(spec, job) == Bytes(4 * 128'000'000 / 2));
  spec.style = LoaderStyle::remote;
  CHECK(loading_memory(spec, job) == Bytes(4 * 400'000 / 2 + 4 * 128'000'000 / 1024));
}

std::vector<LoadedStep> alike(std::size_t steps, Duration load, Duration time) {
  return {steps, LoadedStep{{load}, time}};
}

std::vector<Duration> waits_of(const LoadingSpec& spec, const std::vector<LoadedStep>& steps) {
  return loaded_course(spec, steps).waits;
}

TEST_CASE("loading behind a longer step costs nothing, once something is loaded ahead", "[loading]") {
  LoadingSpec spec = loading(LoaderStyle::remote);
  spec.prefetch = 1;
  CHECK(waits_of(spec, alike(3, 4_s, 5_s)) == std::vector<Duration>(3, 0_s));
  spec.prefetch = 0;
  CHECK(waits_of(spec, alike(3, 4_s, 5_s)) == std::vector<Duration>(3, 4_s));
}

TEST_CASE("a loader that is slower than the steps sets their pace", "[loading]") {
  LoadingSpec spec = loading(LoaderStyle::remote);
  for (const std::int64_t prefetch : {1, 2, 5}) {
    spec.prefetch = prefetch;
    CHECK(waits_of(spec, alike(8, 7_s, 5_s)) == std::vector<Duration>(8, 2_s));
  }
}

TEST_CASE("a deeper prefetch evens out what the mean can hide", "[loading]") {
  // Loading takes 4 s, steps 1 s and 8 s in turn: with one batch ahead the short step waits 3 s.
  std::vector<LoadedStep> steps;
  for (int i = 0; i < 6; ++i) steps.push_back({{4_s}, i % 2 == 0 ? 1_s : 8_s});
  LoadingSpec spec = loading(LoaderStyle::remote);
  spec.prefetch = 1;
  // The batch behind a short step is loaded while it runs, so the long one that follows waits for the rest.
  CHECK(waits_of(spec, steps) == std::vector<Duration>{0_s, 3_s, 0_s, 3_s, 0_s, 3_s});
  spec.prefetch = 3;
  CHECK(waits_of(spec, steps) == std::vector<Duration>(6, 0_s));
}

TEST_CASE("stages work on different batches at the same time", "[loading]") {
  LoadingSpec spec = loading(LoaderStyle::remote);
  spec.prefetch = 4;
  const std::vector<LoadedStep> steps(6, LoadedStep{{3_s, 3_s, 3_s}, 3_s});
  CHECK(waits_of(spec, steps) == std::vector<Duration>(6, 0_s));
  spec.prefetch = 1;  // one batch at a time: 9 s, of which a step of 3 s hides 3
  CHECK(waits_of(spec, steps) == std::vector<Duration>(6, 6_s));
}

TEST_CASE("a planner that does not work ahead is waited for in every step", "[loading]") {
  LoadingSpec spec = loading(LoaderStyle::remote);
  spec.planner = 200_ms;
  CHECK(loading_stages(spec, job)[1] == 200_ms);
  spec.plan_ahead = false;
  CHECK(loading_stages(spec, job)[1] == 0_s);
  CHECK(waits_of(spec, alike(3, 1_s, 5_s)) == std::vector<Duration>(3, 200_ms));
}

TEST_CASE("a run may be longer than a step can be", "[loading]") {
  LoadingSpec spec = loading(LoaderStyle::spmd);
  spec.prefetch = 1;
  const Duration day = 24 * 3600_s;
  // Steps of 40 days, behind each of which a batch is loaded for 41.
  CHECK(waits_of(spec, alike(6, 41 * day, 40 * day)) == std::vector<Duration>(6, day));
}

TEST_CASE("everything that is wrong with a loader is told", "[loading]") {
  Diagnostics diagnostics;
  const Value value = parse_document(
      "loading.yaml", "{style: lazy, bytes_per_token: 0 B, storage: 0 GB/s, planner: -1 s, prefetch: -1, depth: 2}",
      diagnostics);
  (void)read_loading(value, diagnostics);
  CHECK(diagnostics.sorted().size() == 6);
}

TEST_CASE("a job that goes back to a checkpoint loads what its next step needs from then on", "[loading]") {
  const LoadingSpec spec = loading(LoaderStyle::remote);
  LoadedRun run(spec);
  const LoadedStep step{{6_s}, 10_s};
  CHECK(run.wait(step) == 6_s);  // the first one, too
  for (int i = 0; i < 4; ++i) CHECK(run.wait(step) == 0_s);
  run.stand_still(60_s);
  CHECK(run.wait(step) == 0_s);
  run.begin_again();
  CHECK(run.wait(step) == 6_s);
  CHECK(run.wait(step) == 0_s);
}

}  // namespace
}  // namespace hdpsim
