#include "sim/report/trace_events.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "sim/analysis/link_use.h"
#include "sim/base/check.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

Bytes gigabytes(std::int64_t count) {
  return Bytes(count * 1'000'000'000);
}

using nlohmann::json;
using test::HandCosts;
using test::HandMachine;

constexpr std::int64_t traced_layers = 4;

std::string unzipped(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  REQUIRE(file != nullptr);
  std::string text;
  std::vector<char> piece(1U << 16U);
  for (int read = 0; (read = gzread(file, piece.data(), static_cast<unsigned>(piece.size()))) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(read));
  }
  REQUIRE(gzclose(file) == Z_OK);
  return text;
}

/// A step of a ring of three that is followed by a lone micro-batch, on a network that makes rings wait.
struct SmallStep {
  Plan plan = test::plan_of(4, traced_layers, {{{0, 1, 2}, 6000}, {{3}, 1000}, {{1}, 500}});
  HandMachine world{test::one_device_nodes(4, 1_GBps), std::make_unique<HandCosts>(1_us)};
  Transformer model = test::one_head_model(traced_layers);
  LoweringOptions lowering{model, Mesh{.hdp = 4}};
  Program program{plan, lowering};
  Timeline timeline;

  explicit SmallStep(Grain grain) {
    world.machine.record_instructions = grain == Grain::exact;
    timeline = simulate(program, world.machine, grain);
  }
  [[nodiscard]] TracedStep traced(const std::string& title = "") const {
    return {title, program, timeline, &world.machine};
  }
};

std::vector<HdpRank> all_ranks() {
  return {HdpRank(0), HdpRank(1), HdpRank(2), HdpRank(3)};
}

json written(const std::vector<TracedStep>& steps, const TraceSelection& selection) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "t.json.gz";
  write_trace_events(path, steps, selection);
  return json::parse(unzipped(path));
}

std::vector<json> of_phase(const json& trace, const std::string& phase) {
  std::vector<json> found;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

using Thread = std::pair<int, int>;
Thread thread_of(const json& event) {
  return {event.at("pid"), event.at("tid")};
}

double end_of(const json& event) {
  return event.at("ts").get<double>() + event.at("dur").get<double>();
}

// Slices of a thread must be apart, or one within the other: viewers drop what crosses. Times are decimal
// microseconds, read as doubles: a thousandth of a picosecond apart is the same time.
constexpr double same = 1e-9;

void check_format(const json& trace) {
  std::set<int> processes;
  std::set<Thread> threads;
  std::map<std::string, int> phases;
  double last = 0;
  std::map<Thread, double> busy_until;
  for (const json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    ++phases[phase];
    REQUIRE(event.at("pid").get<int>() >= 1);
    if (phase == "M") {
      REQUIRE(event.at("args").is_object());
      if (event.at("name") == "process_name") processes.insert(event.at("pid").get<int>());
      if (event.at("name") == "thread_name") threads.insert(thread_of(event));
      continue;
    }
    const double ts = event.at("ts");
    REQUIRE(ts >= last);  // in the order of time
    last = ts;
    REQUIRE_FALSE(event.at("name").get<std::string>().empty());
    REQUIRE(processes.contains(event.at("pid").get<int>()));
    if (phase == "C") {
      for (const auto& value : event.at("args")) REQUIRE(value.is_number());
      continue;
    }
    REQUIRE(threads.contains(thread_of(event)));
    if (phase == "X") {
      REQUIRE(event.at("dur").get<double>() >= 0);
      CAPTURE(event.dump());
      REQUIRE(ts >= busy_until[thread_of(event)] - same);
      busy_until[thread_of(event)] = end_of(event);
    }
  }
  for (const auto& [phase, count] : phases) {
    CAPTURE(phase, count);
    CHECK(std::string("MXsfC").find(phase) != std::string::npos);
  }
}

TEST_CASE("the trace of a step of either grain is in the format", "[trace_events]") {
  for (const Grain grain : {Grain::exact, Grain::fluid}) {
    const SmallStep step(grain);
    const json trace = written({step.traced()}, {.ranks = all_ranks()});
    check_format(trace);
    CHECK(trace.at("displayTimeUnit") == "ms");
    CHECK(trace.at("otherData").at("steps").at(0).at("plan") == "by hand");
    CHECK_FALSE(of_phase(trace, "C").empty());
  }
}

TEST_CASE("every instruction of the shown ranks is an event with its own times", "[trace_events]") {
  const SmallStep step(Grain::exact);
  const json trace = written({step.traced()}, {.ranks = {HdpRank(1), HdpRank(3)}});
  std::multiset<std::tuple<int, std::string, double>> shown;
  for (const json& event : of_phase(trace, "X")) {
    if (event.at("cat") == "micro-batch") continue;
    shown.emplace(event.at("pid").get<int>(), event.at("name").get<std::string>(), event.at("dur").get<double>());
  }
  std::multiset<std::tuple<int, std::string, double>> ran;
  for (const InstructionRecord& record : step.timeline.instructions) {
    if (record.rank != HdpRank(1) && record.rank != HdpRank(3)) continue;
    const double microseconds = static_cast<double>((record.end - record.begin).picoseconds()) / 1e6;
    ran.emplace(static_cast<int>(record.rank.index()) + 1, std::string(opcode_name(record.opcode)), microseconds);
  }
  CHECK(shown.size() > 50);
  CHECK(shown == ran);
}

TEST_CASE("an arrow leads from each exchange to the next rank of the ring", "[trace_events]") {
  const SmallStep step(Grain::exact);
  const json trace = written({step.traced()}, {.ranks = all_ranks()});
  std::map<std::string, json> starts;
  for (const json& start : of_phase(trace, "s")) CHECK(starts.emplace(start.at("id"), start).second);
  const std::vector<json> ends = of_phase(trace, "f");
  std::size_t exchanges = 0;
  for (const InstructionRecord& record : step.timeline.instructions) exchanges += record.opcode == Opcode::exchange;
  CHECK(exchanges > 0);
  CHECK(starts.size() == exchanges);
  CHECK(ends.size() == exchanges);
  const std::vector<json> slices = of_phase(trace, "X");
  const auto within_exchange = [&](const json& event) {
    return std::any_of(slices.begin(), slices.end(), [&](const json& slice) {
      return slice.at("name") == "exchange" && thread_of(slice) == thread_of(event) &&
             slice.at("ts") <= event.at("ts") && event.at("ts").get<double>() < end_of(slice);
    });
  };
  for (const json& end : ends) {
    const json& start = starts.at(end.at("id"));
    CHECK(end.at("bp") == "e");
    CHECK(start.at("ts") <= end.at("ts"));
    CHECK(end.at("pid").get<int>() - 1 == start.at("pid").get<int>() % 3);  // pids of ranks 0, 1, 2: 1, 2, 3
    CHECK(within_exchange(start));
    CHECK(within_exchange(end));
  }
}

TEST_CASE("ranks and times that are not asked for are left out", "[trace_events]") {
  const SmallStep step(Grain::exact);
  const Duration half = Duration::picoseconds(step.timeline.step_time.picoseconds() / 2);
  const json trace = written({step.traced()}, {.ranks = {HdpRank(1)}, .from = half});
  std::size_t late = 0;
  for (const InstructionRecord& record : step.timeline.instructions) {
    late += record.rank == HdpRank(1) && record.end.since_start() >= half;
  }
  std::size_t shown = 0;
  for (const json& event : of_phase(trace, "X")) {
    CHECK(event.at("pid") == 2);
    shown += event.at("cat") != "micro-batch";
  }
  CHECK(late > 0);
  CHECK(shown == late);
  CHECK(of_phase(trace, "s").empty());  // the next rank is not there
}

TEST_CASE("too many instructions are thinned to whole layers, and the file says so", "[trace_events]") {
  const SmallStep step(Grain::exact);
  const std::size_t all = step.timeline.instructions.size();
  const json trace = written({step.traced()}, {.ranks = all_ranks(), .most_instructions = all * 3 / 5});
  CHECK(trace.at("otherData").at("steps").at(0).at("instructions") == "of every 2 turns of a loop the first");
  for (const json& event : of_phase(trace, "X")) {
    if (event.at("cat") != "micro-batch") CHECK(event.at("args").at("iteration").get<int>() % 2 == 0);
  }
  CHECK(of_phase(trace, "X").size() < all * 3 / 5 + 4);
  check_format(trace);
}

TEST_CASE("two steps stand beside each other with their own processes and arrows", "[trace_events]") {
  const SmallStep step(Grain::exact);
  TracedStep measured = step.traced("measured");
  measured.machine = nullptr;
  const json trace = written({measured, step.traced("predicted")}, {.ranks = all_ranks()});
  check_format(trace);
  std::set<std::string> names;
  for (const json& event : of_phase(trace, "M")) {
    if (event.at("name") == "process_name") names.insert(event.at("args").at("name").get<std::string>());
  }
  CHECK(names.contains("measured rank 2"));
  CHECK(names.contains("predicted rank 2 (gpu 2)"));
  CHECK(names.contains("predicted busiest links"));
  CHECK_FALSE(names.contains("measured busiest links"));
  std::set<std::string> ids;
  for (const json& start : of_phase(trace, "s")) CHECK(ids.insert(start.at("id")).second);
}

/// Two ranks in rings, of two stages each.
struct PipelinedStep {
  static constexpr std::int64_t stages = 2;
  Plan plan = test::plan_of(2, traced_layers / stages, {{{0, 1}, 6000}, {{0}, 1000}, {{1}, 1500}});
  HandMachine world{test::one_device_nodes(4, 1_GBps), std::make_unique<HandCosts>(1_us), stages};
  LoweringOptions lowering{test::one_head_model(traced_layers), Mesh{.hdp = 2, .pp = stages}};
  Program program{plan, lowering};
  Timeline timeline;

  explicit PipelinedStep(Grain grain) {
    world.machine.record_instructions = grain == Grain::exact;
    timeline = simulate(program, world.machine, grain);
  }
  [[nodiscard]] json trace() const {
    return written({{"", program, timeline, &world.machine}}, {.ranks = {HdpRank(0), HdpRank(1)}});
  }
};

TEST_CASE("a rank of a pipeline is a process with threads for each of its stages", "[trace_events]") {
  for (const Grain grain : {Grain::exact, Grain::fluid}) {
    const PipelinedStep step(grain);
    const json trace = step.trace();
    check_format(trace);
    std::set<std::string> names;
    for (const json& event : of_phase(trace, "M")) names.insert(event.at("args").value("name", ""));
    CHECK(names.contains("rank 1 (gpus 2 to 3)"));
    CHECK(names.contains("stage 0 micro-batches"));
    CHECK(names.contains("stage 1 micro-batches"));
    CHECK(names.contains("stage 1 compute") == (grain == Grain::exact));
    // Each rank has two micro-batches, which go forward and backward on each stage.
    std::map<std::pair<int, int>, int> passes;
    for (const json& event : of_phase(trace, "X")) {
      if (event.at("cat") == "micro-batch") ++passes[{event.at("pid"), event.at("args").at("stage")}];
    }
    CHECK(passes == std::map<std::pair<int, int>, int>{{{1, 0}, 4}, {{1, 1}, 4}, {{2, 0}, 4}, {{2, 1}, 4}});
    const json& workers = trace.at("otherData").at("steps").at(0).at("workers");
    REQUIRE(workers.size() == 4);
    CHECK(workers.at(1).at("stage") == 1);
    CHECK(workers.at(1).at("breakdown_s").at("bubble") == step.timeline.ranks[1][Activity::bubble].seconds());
  }
}

TEST_CASE("an arrow leads from each pass to the stage that needs it", "[trace_events]") {
  const json trace = PipelinedStep(Grain::fluid).trace();
  const std::vector<json> starts = of_phase(trace, "s");
  const std::vector<json> ends = of_phase(trace, "f");
  // Of every micro-batch on every rank of its group: one forward to the last stage, one backward to the first.
  CHECK(starts.size() == 2 * 4);
  REQUIRE(ends.size() == starts.size());
  for (const json& end : ends) {
    const auto start =
        std::find_if(starts.begin(), starts.end(), [&](const json& s) { return s.at("id") == end.at("id"); });
    REQUIRE(start != starts.end());
    CHECK(start->at("pid") == end.at("pid"));
    CHECK(start->at("tid") != end.at("tid"));
    CHECK(start->at("ts") <= end.at("ts"));
  }
}

TEST_CASE("instructions of a pipeline are counted as the exact grain records them", "[trace_events]") {
  const PipelinedStep step(Grain::exact);
  CHECK(instructions_of(step.program) == std::ssize(step.timeline.instructions));
}

TEST_CASE("the memory of a shown rank is a counter that goes evenly from sample to sample", "[trace_events]") {
  const SmallStep step(Grain::fluid);
  TracedStep traced = step.traced();
  const Duration end = step.timeline.step_time;
  traced.memory = {{HdpRank(1), {{Duration{}, gigabytes(10), {}}, {end, gigabytes(18), gigabytes(4)}}},
                   {HdpRank(2), {{Duration{}, gigabytes(1), {}}}}};
  traced.device_memory = gigabytes(80);
  const json trace = written({traced}, {.ranks = {HdpRank(1)}});
  check_format(trace);
  std::vector<double> device;
  for (const json& event : of_phase(trace, "C")) {
    if (event.at("name") != "device memory, GB of 80") continue;
    CHECK(event.at("pid") == 2);
    device.push_back(event.at("args").at("GB"));
  }
  CHECK(device == std::vector<double>{10, 11, 12, 13, 14, 15, 16, 17, 18});
}

TEST_CASE("the same step gives the same bytes", "[trace_events]") {
  const test::TemporaryFolder folder;
  std::vector<std::string> texts;
  for (const char* name : {"a.gz", "b.gz"}) {
    write_trace_events(folder.path() / name, {SmallStep(Grain::exact).traced()}, {.ranks = all_ranks()});
    std::ifstream file(folder.path() / name, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  CHECK(texts[0].size() > 100);
  CHECK((texts[0] == texts[1]));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "a.gz.part"));
}

TEST_CASE("a trace that cannot be written leaves nothing behind", "[trace_events]") {
  const test::TemporaryFolder folder;
  const SmallStep step(Grain::fluid);
  CHECK_THROWS_AS(write_trace_events(folder.path() / "no" / "t.gz", {step.traced()}, {.ranks = all_ranks()}),
                  MachineError);
  std::filesystem::create_directories(folder.path() / "taken" / "inside");
  CHECK_THROWS_AS(write_trace_events(folder.path() / "taken", {step.traced()}, {.ranks = all_ranks()}), MachineError);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "taken.part"));
}

TEST_CASE("instructions are counted as the exact grain records them", "[trace_events]") {
  const SmallStep step(Grain::exact);
  CHECK(instructions_of(step.program) == std::ssize(step.timeline.instructions));
}

TEST_CASE("the load of a link over the step is what the link carried", "[link_load]") {
  const SmallStep step(Grain::fluid);
  const Machine& machine = step.world.machine;
  const Duration time = step.timeline.step_time;
  const auto loads = link_loads(step.program, step.timeline, machine, {Instant{}, Instant::at(time)}, 100, 77);
  REQUIRE(loads.size() == 6);  // in and out of three nodes
  for (const LinkLoad& load : loads) {
    std::size_t link = 0;
    while (machine.network->link_name(LinkId(link)) != load.name) ++link;
    const auto rate = static_cast<double>(machine.network->link_rate(LinkId(link)).bytes_per_second());
    double bytes = 0;
    for (const double share : load.shares) {
      CHECK(share >= 0);
      CHECK(share <= 1 + 1e-9);
      bytes += share * rate * time.seconds() / 77;
    }
    CHECK(bytes == Approx(static_cast<double>(step.timeline.links.bytes[link].count())));
  }
}

TEST_CASE("the load in a part of a step is that of the micro-batches in it", "[link_load]") {
  const SmallStep step(Grain::fluid);
  const MicroBatchInterval ring = step.timeline.micro_batches[0];
  const auto loads = [&](TimeWindow window) {
    return link_loads(step.program, step.timeline, step.world.machine, window, 1, 3).at(0).shares;
  };
  // Within the ring the load is even; three thirds, of which the ring covers the first half, are 1, 1/2 and 0 of it.
  const double full = loads({ring.begin, ring.end})[0];
  CHECK(full > 0);
  CHECK(loads({ring.begin, ring.end})[2] == Approx(full));
  const std::vector<double> halves = loads({ring.begin, ring.end + (ring.end - ring.begin)});
  CHECK(halves[0] == Approx(full));
  CHECK(halves[1] == Approx(full / 2));
  CHECK(halves[2] == Approx(0).margin(1e-12));
}

}  // namespace
}  // namespace hdpsim
