// Loaders of each source: supply and demand, deaths, shadows, numbers that follow the mix, memory, connections.
#include <cmath>
#include <numeric>

#include "sim/loading/loaded_run.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Kind = LoaderEvent::Kind;

// A source of which one loader prepares a million tokens a second.
LoadingSpec actors_of(std::vector<SourceSpec> sources) {
  LoadingSpec spec;
  spec.style = LoaderStyle::actors;
  spec.bytes_per_token = Bytes(4);
  spec.tokens_per_s = 1e6;
  spec.sources = std::move(sources);
  return spec;
}

SourceSpec source(const std::string& name, double weight = 1) {
  SourceSpec made;
  made.name = name;
  made.weight = weight;
  return made;
}

// Steps of `time` whose batches take one loader `work` seconds.
std::vector<LoadedStep> steps_of(const LoadingSpec& spec, std::int64_t count, double work, Duration time) {
  std::vector<LoadedStep> steps;
  for (std::int64_t i = 0; i < count; ++i) {
    LoadingJob job{.ranks = 16, .nodes = 4};
    job.tokens = static_cast<std::int64_t>(work * 1e6);
    job.samples = 100;
    job.step = i;
    steps.push_back({loading_stages(spec, job), time, job});
  }
  return steps;
}

std::vector<Duration> waits_of_actors(const LoadingSpec& spec, const std::vector<LoadedStep>& steps) {
  return loaded_course(spec, steps).waits;
}

Duration total(const std::vector<Duration>& waits) {
  return std::accumulate(waits.begin(), waits.end(), Duration{});
}

TEST_CASE("a source that supplies what steps demand is not waited for; a slower one sets their pace", "[loading]") {
  LoadingSpec spec = actors_of({source("web")});
  CHECK(waits_of_actors(spec, steps_of(spec, 10, 5, 5_s)) == std::vector<Duration>(10, 0_s));
  CHECK(waits_of_actors(spec, steps_of(spec, 10, 7, 5_s)) == std::vector<Duration>(10, 2_s));
  spec.sources[0].actors = 2;  // 3.5 s
  CHECK(waits_of_actors(spec, steps_of(spec, 10, 7, 5_s)) == std::vector<Duration>(10, 0_s));
  spec.sources[0].actors = 1;
  spec.sources[0].processes = 2;
  CHECK(waits_of_actors(spec, steps_of(spec, 10, 7, 5_s)) == std::vector<Duration>(10, 0_s));
}

TEST_CASE("sources work side by side, so that a batch waits for the one with the most to do", "[loading]") {
  const LoadingSpec spec = actors_of({source("web", 3), source("books", 1)});
  const LoadedCourse course = loaded_course(spec, steps_of(spec, 10, 8, 5_s));  // 6 s and 2 s
  CHECK(course.waits == std::vector<Duration>(10, 1_s));
  CHECK(course.use.back().waited_for == "web");
}

TEST_CASE("a sample may cost more than its tokens", "[loading]") {
  LoadingSpec spec = actors_of({source("scans")});
  spec.tokens_per_s.reset();
  spec.sources[0].sample = 60_ms;  // 100 samples: 6 s
  CHECK(waits_of_actors(spec, steps_of(spec, 5, 1, 5_s)) == std::vector<Duration>(5, 1_s));
}

// Steps of 5 s with two batches ahead, each of which takes the source 1 s.
LoadingSpec mortal(std::int64_t deaths_at_once) {
  LoadingSpec spec = actors_of({source("web"), source("books")});
  spec.tokens_per_s = 0.5e6;
  LoaderDeaths deaths;
  deaths.stated.assign(static_cast<std::size_t>(deaths_at_once), {15, "web"});
  deaths.snapshot = 10;
  deaths.restart = 20_s;
  spec.deaths = deaths;
  return spec;
}

TEST_CASE("a death stalls for restart and replay, less what is loaded ahead", "[loading]") {
  const LoadingSpec spec = mortal(1);
  const LoadedCourse course = loaded_course(spec, steps_of(spec, 30, 1, 5_s));
  // As step 15 begins, batches to 16 are there. 20 s later a new loader prepares again what came after the snapshot,
  // batches 10 to 16, and then 17, which is due after two steps.
  std::vector<Duration> expected(30, 0_s);
  expected[17] = 20_s + 7_s + 1_s - 2 * 5_s;
  CHECK(course.waits == expected);
  REQUIRE(course.events.size() == 1);
  CHECK(course.events[0] == LoaderEvent{Kind::lost, 17, 15 * 5.0, "web", 1, 27_s});
  CHECK(course.use[17].waited_for == "web");
  CHECK(course.use[18].waited_for.empty());
}

TEST_CASE("a shadow takes over without a stall, and a second death before there is a new one finds none", "[loading]") {
  LoadingSpec spec = mortal(1);
  spec.deaths->shadows = 1;
  LoadedCourse course = loaded_course(spec, steps_of(spec, 30, 1, 5_s));
  CHECK(course.waits == std::vector<Duration>(30, 0_s));
  CHECK(course.events.at(0).kind == Kind::promoted);

  spec.deaths->promote = 12_s;  // batch 17 is ready 13 s after step 15 begins, and due after 10
  course = loaded_course(spec, steps_of(spec, 30, 1, 5_s));
  CHECK(course.waits[17] == 3_s);
  CHECK(total(course.waits) == 3_s);

  spec = mortal(2);
  spec.deaths->shadows = 1;
  course = loaded_course(spec, steps_of(spec, 30, 1, 5_s));
  CHECK(course.waits[17] == 18_s);
  CHECK(course.events.at(1).kind == Kind::lost);
  spec.deaths->shadows = 2;
  CHECK(total(waits_of_actors(spec, steps_of(spec, 30, 1, 5_s))) == 0_s);
}

TEST_CASE("loaders that hold more batches ahead ride out a longer replay", "[loading]") {
  LoadingSpec spec = mortal(1);
  Duration before = Duration::max();
  for (const std::int64_t prefetch : {0, 1, 2, 4, 8}) {
    spec.prefetch = prefetch;
    const Duration stall = total(waits_of_actors(spec, steps_of(spec, 30, 1, 5_s)));
    CHECK(stall < before);
    before = stall;
  }
  CHECK(before == 0_s);  // 28 s are less than eight steps
}

TEST_CASE("deaths by rate come as often as their mean says, and the same for the same seed", "[loading]") {
  LoadingSpec spec = actors_of({source("web")});
  spec.sources[0].actors = 4;
  spec.sources[0].count = 10;
  spec.deaths.emplace().mtbf_s = 4000;
  const auto steps = steps_of(spec, 2000, 1, 10_s);
  const LoadedCourse course = loaded_course(spec, steps);
  const double expected = 40.0 * 2000 * 10 / 4000;  // 200, with a deviation of 14
  CHECK(std::abs(static_cast<double>(course.events.size()) - expected) < 4 * std::sqrt(expected));
  CHECK(loaded_course(spec, steps).events == course.events);
  spec.deaths->seed = 2;
  CHECK(loaded_course(spec, steps).events != course.events);
}

// Web's share goes from a fifth to a half between steps 20 and 21: of 25 s from 5 s to 12.5 s, of steps of 10 s.
LoadingSpec drifting(std::int64_t ahead) {
  LoadingSpec spec = actors_of({source("web"), source("books", 4)});
  spec.sources[0].drift = {{20, 1}, {21, 4}};
  spec.sources[1].tokens_per_s = 1e12;
  AutoscaleSpec scaling;
  scaling.window = 1;
  scaling.ahead = ahead;
  scaling.headroom = 1;
  scaling.start = 60_s;
  spec.autoscale = scaling;
  return spec;
}

TEST_CASE("the mix goes straight from point to point", "[loading]") {
  SourceSpec drift = source("web");
  drift.drift = {{10, 1}, {20, 3}};
  CHECK(drift.weight_at(0) == 1);
  CHECK(drift.weight_at(15) == 2);
  CHECK(drift.weight_at(20) == 3);
  CHECK(drift.weight_at(1'000'000) == 3);
  const LoadingSpec spec = drifting(0);
  CHECK(spec.shares_at(20) == std::vector<double>{0.2, 0.8});
  CHECK(spec.shares_at(21) == std::vector<double>{0.5, 0.5});
}

TEST_CASE("loaders that follow a mix known ahead are there before the queue is empty", "[loading]") {
  LoadingSpec spec = drifting(8);
  LoadedCourse course = loaded_course(spec, steps_of(spec, 40, 25, 10_s));
  CHECK(total(course.waits) == 0_s);
  REQUIRE(course.events.size() == 1);
  CHECK(course.events[0] == LoaderEvent{Kind::added, 13, 130, "web", 2, 0_s});

  // Told by the steps themselves, the new loader works 60 s after step 21 begins. Batch 21 is begun 20 s before it, and
  // each takes 2.5 s longer than a step: batches 25 and 26 are late, then 27 is prepared by two after its first 5 s.
  spec = drifting(0);
  course = loaded_course(spec, steps_of(spec, 40, 25, 10_s));
  std::vector<Duration> expected(40, 0_s);
  expected[25] = expected[26] = 2500_ms;
  CHECK(course.waits == expected);
  CHECK(course.events.at(0).step == 21);

  spec.autoscale.reset();  // 2.5 s in every step, once the batches ahead are used up
  CHECK(loaded_course(spec, steps_of(spec, 40, 25, 10_s)).waits.back() == 2500_ms);
}

TEST_CASE("a loader that is not needed for the window's steps goes", "[loading]") {
  LoadingSpec spec = drifting(0);
  spec.sources[0].drift = {{20, 4}, {21, 1}};
  spec.sources[0].actors = 2;
  spec.autoscale->window = 4;
  const LoadedCourse course = loaded_course(spec, steps_of(spec, 40, 25, 10_s));
  CHECK(total(course.waits) == 0_s);
  REQUIRE(course.events.size() == 1);
  // The mean of four steps needs one loader from (2 x 0.5 + 2 x 0.2) / 4 x 2.5 < 1 on, at step 22: four steps to 25.
  CHECK(course.events[0] == LoaderEvent{Kind::removed, 25, 250, "web", 1, 0_s});
  CHECK(course.use[24].loaders == 3);
  CHECK(course.use[25].loaders == 2);
}

TEST_CASE("files that are dealt out anew hold a source up", "[loading]") {
  LoadingSpec spec = drifting(8);
  spec.autoscale->reshard = 40_s;
  // From 190 s on: batch 21, begun then, is ready at 190 + 40 + 6.25 and due at 210 s.
  const std::vector<Duration> waits = waits_of_actors(spec, steps_of(spec, 40, 25, 10_s));
  CHECK(waits[21] == 26'250_ms);
}

TEST_CASE("memory of loaders goes with sources x processes x ranks, of actors with sources", "[loading]") {
  LoadingJob job{.ranks = 64, .devices_per_rank = 8, .nodes = 64, .tokens = 1'000'000, .samples = 100};
  LoadingSpec spec = actors_of({source("web")});
  spec.processes = 4;
  spec.prefetch = 1;
  spec.process_memory = Bytes(1'000'000);
  spec.sources[0].access = Bytes(10'000'000);
  for (const std::int64_t sources : {5, 306}) {
    spec.sources[0].count = sources;
    spec.style = LoaderStyle::spmd;
    spec.each_device = true;
    const std::int64_t batches = 2 * 4'000'000;
    CHECK(loading_memory(spec, job) == Bytes(4 * (sources * 10'000'000 + 1'000'000) + batches));
    spec.style = LoaderStyle::actors;
    // One loader a source, 64 constructors, and the batches twice: as samples and as batches.
    CHECK(loading_memory(spec, job) ==
          Bytes((sources * (10'000'000 + 4'000'000) + 64 * 1'000'000 + 2 * batches) / (64 * 8)));
    spec.deaths.emplace().shadows = 2;  // loaders and their samples three times
    CHECK(loading_memory(spec, job) ==
          Bytes((3 * sources * (10'000'000 + 4'000'000) + 64 * 1'000'000 + 4 * batches) / (64 * 8)));
    spec.deaths.reset();
  }
}

TEST_CASE("loaders for which nodes have no room are elsewhere", "[loading]") {
  LoadingSpec spec = actors_of({source("web")});
  spec.sources[0].access = Bytes(1'000'000'000);
  spec.sources[0].count = 10;
  spec.node_room = Bytes(2'000'000'000);
  const LoaderMemory memory = loaded_course(spec, steps_of(spec, 1, 0, 1_s)).use.front().memory;
  CHECK(memory == LoaderMemory{Bytes(10'000'000'000), Bytes(2'000'000'000), Bytes(2'000'000'000)});
}

TEST_CASE("a client that asks all loaders has its knee where its ranks x connection exceed a step", "[loading]") {
  LoadingSpec spec = actors_of({source("web")});
  spec.sources[0].count = 306;
  spec.connection = 1_ms;
  const auto wait = [&](std::int64_t ranks, std::int64_t constructors) {
    spec.constructors = constructors;
    LoadingJob job{.ranks = ranks, .nodes = ranks / 8};
    const std::vector<LoadedStep> steps(8, {loading_stages(spec, job), 1500_ms, job});
    const LoadedCourse course = loaded_course(spec, steps);
    const std::int64_t connections = constructors == 0 ? 306 * ranks : 306 * constructors + ranks;
    CHECK(course.use.back().connections == connections);
    return course.waits.back();
  };
  CHECK(wait(1024, 0) == 0_s);
  CHECK(wait(2048, 0) == 548_ms);
  CHECK(wait(4096, 0) == 2596_ms);
  CHECK(wait(4096, 512) == 0_s);  // 512 ms at a loader, 8 ms at a constructor
}

TEST_CASE("planning takes a time, one for each sample, and one for each comparison", "[loading]") {
  LoadingSpec spec = actors_of({source("web")});
  spec.planner = 100_ms;
  spec.planner_sample = 10_us;
  spec.planner_compare = 1_us;
  const LoadingJob job{.samples = 1024};
  CHECK(loading_stages(spec, job)[1] == 100_ms + 10'240_us + 1024 * 10 * 1_us);
  spec.plan_ahead = false;  // each step waits for it instead
  CHECK(loading_stages(spec, job)[1] == 0_s);
  auto steps = steps_of(spec, 4, 1, 5_s);
  for (LoadedStep& step : steps) step.job.samples = 1024;
  const LoadedCourse course = loaded_course(spec, steps);
  CHECK(course.waits == std::vector<Duration>(4, 120'480_us));
  CHECK(course.use.back().waited_for == "planner");
}

TEST_CASE("loaders go on while trainers stand still", "[loading]") {
  const LoadingSpec spec = actors_of({source("web")});
  const auto steps = steps_of(spec, 7, 7, 5_s);
  LoadedRun run(spec);
  for (const LoadedStep& step : steps) run.rehearse(step);
  CHECK(run.wait(steps[0]) == 2_s);
  run.stand_still(100_s);
  for (std::size_t i = 1; i < 5; ++i) CHECK(run.wait(steps[i]) == 0_s);
  // Batches 1 and 2 are there. As step 1 begins, the source begins batch 3, and is done with 5 after 21 s: 1 s late.
  CHECK(run.wait(steps[5]) == 1_s);
  CHECK(run.wait(steps[6]) == 2_s);
}

TEST_CASE("SPMD loaders prepare their samples of all sources", "[loading]") {
  LoadingSpec spec = actors_of({source("web", 3), source("scans", 1)});
  spec.style = LoaderStyle::spmd;
  spec.sources[1].tokens_per_s = 0.1e6;
  const LoadingJob job{.ranks = 4, .tokens = 8'000'000, .largest_share = 2'000'000, .samples = 100};
  CHECK(loading_stages(spec, job) == std::vector<Duration>{6_s + 20_s});
  spec.whole_batch = false;
  CHECK(loading_stages(spec, job) == std::vector<Duration>{(6_s + 20_s).scaled(0.25)});
}

std::vector<std::string> problems_of(const std::string& text) {
  Diagnostics diagnostics;
  (void)read_loading(parse_document("loading.yaml", text, diagnostics), diagnostics);
  std::vector<std::string> problems;
  for (const auto& each : diagnostics.sorted()) problems.push_back(each.message);
  return problems;
}

TEST_CASE("what is wrong with sources is told at once", "[loading]") {
  CHECK(problems_of("{style: actors, bytes_per_token: 4 B}") ==
        std::vector<std::string>{"loading of the style 'actors' needs 'sources'"});
  CHECK(problems_of(R"(
style: actors
bytes_per_token: 4 B
sources:
  - {name: web, weight: 0}
  - {name: web, weight: 1, drift: [{step: 5, weight: 0}, {step: 5, weight: 0}]}
  - {name: books, weight: -1, sample: -1 s, acess: 1 GB}
deaths: {at: [{step: 3, source: boks}], restart: -1 s}
)")
            .size() == 8);
  CHECK(problems_of("{style: actors, bytes_per_token: 4 B, sources: [{name: a, weight: 0}, {name: b, drift: "
                    "[{step: 0, weight: 1}, {step: 9, weight: 0}]}]}") ==
        std::vector<std::string>{"at step 9 the weights of the sources sum to nothing"});
  CHECK(problems_of("{style: remote, bytes_per_token: 4 B, sources: [{name: a}], deaths: {}, reads: share}").size() ==
        3);
  CHECK(problems_of("{style: spmd, bytes_per_token: 4 B, sources: [], autoscale: {headroom: 0.5}}").size() == 3);
}

}  // namespace
}  // namespace hdpsim
