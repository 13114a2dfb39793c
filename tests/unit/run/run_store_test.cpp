#include "sim/run/run_store.h"

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

std::optional<RunResult> loaded(const RunStore& store, std::string_view identity,
                                std::vector<std::string>* told = nullptr) {
  return store.load(identity, [&](const Diagnostic& part) {
    if (told != nullptr) told->push_back(part.message);
  });
}

RunResult a_result() {
  StepResult step;
  step.step = 3;
  step.sequences = 17;
  step.tokens = 1 << 20;
  step.micro_batches = 40;
  step.model_flops = 1.0 / 3;
  step.time = Duration::picoseconds(123'456'789'012'345'678);
  step.mean[Activity::attention] = step.time;
  step.busy = {1_ps, 2_ps, 3_ps, 4_ps};
  step.evidence = {DurationSum::picoseconds(5), DurationSum::picoseconds(6), {}, {}};
  step.evidence[2].add(Duration::max(), 3);  // what many ranks do together
  step.connections = {13, 14};
  step.memory = {Bytes(9), Bytes(10), Bytes(15), {}, HdpRank(7), 2, 8_ps};
  step.memory.parts[MemoryPart::head] = Bytes(9);
  step.events = 11;
  step.phases = {0.1, 0.2, 0.3, 0.4, 0.5};
  return {{step},
          {step.mean, Breakdown{}},
          {{"node 0 nic 0 out", 25_GBps, Bytes(12), 0.5}},
          {3, {{HdpRank(7), {{0_ps, Bytes(1), Bytes(2)}, {8_ps, Bytes(9), Bytes(3)}}}, {HdpRank(8), {}}}}};
}

TEST_CASE("a kept run comes back exactly", "[resume]") {
  const test::TemporaryFolder folder;
  const RunStore store(folder.path());
  store.save("this run", a_result());
  const auto kept = loaded(store, "this run");
  REQUIRE(kept);
  const StepResult& step = kept->steps.at(0);
  const StepResult expected = a_result().steps[0];
  CHECK(step.time == expected.time);
  CHECK(step.model_flops == expected.model_flops);
  CHECK(step.busy == expected.busy);
  CHECK(step.evidence == expected.evidence);
  CHECK(step.memory == expected.memory);
  CHECK(kept->memory == a_result().memory);
  CHECK(step.connections == expected.connections);
  CHECK(step.events == expected.events);
  CHECK(step.sequences == 17);
  CHECK(step.phases.simulation_s == 0.4);
  CHECK(step.phases.summary_s == 0.5);
  CHECK(kept->ranks.size() == 2);
  CHECK(kept->ranks[0][Activity::attention] == expected.time);
  CHECK(kept->links == a_result().links);
}

TEST_CASE("a run that depends on something else is not taken", "[resume]") {
  const test::TemporaryFolder folder;
  const RunStore store(folder.path());
  store.save("this run", a_result());
  CHECK_FALSE(loaded(store, "that run"));
  // Nor is one whose file has the right name by chance.
  std::filesystem::copy_file(store.file_of("this run"), store.file_of("that run"));
  std::vector<std::string> told;
  CHECK_FALSE(loaded(store, "that run", &told));
  CHECK(told == std::vector<std::string>{"this is another run"});
}

// That every byte counts is proved of a seal, and that results are the same with any damage in property/kept_results.
TEST_CASE("a run that is not whole is told and simulated again", "[resume]") {
  const test::TemporaryFolder folder;
  const RunStore store(folder.path());
  const std::string whole = run_text("this run", a_result());
  const auto is_damaged = [&](const std::string& text) {
    std::ofstream(store.file_of("this run"), std::ios::binary) << text;
    std::vector<std::string> told;
    const bool taken = loaded(store, "this run", &told).has_value();
    return !taken && told.size() == 1 && told[0].starts_with("this run is damaged");
  };
  CHECK_FALSE(is_damaged(whole));
  CHECK(is_damaged(""));
  CHECK(is_damaged(whole.substr(0, whole.size() / 2)));
  CHECK(is_damaged(whole + whole));
  CHECK(is_damaged(R"({"schema": "hdpsim.run/5", "identity": "this run", "steps": []})"));
  CHECK(is_damaged(R"({"steps":[]})"));
}

TEST_CASE("a run that is not there needs no word", "[resume]") {
  const test::TemporaryFolder folder;
  std::vector<std::string> told;
  CHECK_FALSE(loaded(RunStore(folder.path()), "this run", &told));
  CHECK(told.empty());
}

}  // namespace
}  // namespace hdpsim
