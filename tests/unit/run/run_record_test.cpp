#include "sim/run/run_record.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

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
  step.slopes = {5_ps};
  return {{step},
          {step.mean, Breakdown{}},
          {{"node 0 nic 0 out", 25_GBps, Bytes(12), 0.5}},
          {3, {{HdpRank(7), {{0_ps, Bytes(1), Bytes(2)}, {8_ps, Bytes(9), Bytes(3)}}}, {HdpRank(8), {}}}}};
}

TEST_CASE("a kept run comes back exactly", "[resume]") {
  const auto kept = run_of_text(run_text(a_result()));
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
  CHECK(step.slopes == expected.slopes);
  CHECK(kept->ranks.size() == 2);
  CHECK(kept->ranks[0][Activity::attention] == expected.time);
  CHECK(kept->links == a_result().links);
  CHECK_FALSE(kept->refusal);
  CHECK(run_text(*kept) == run_text(a_result()));
}

TEST_CASE("a text of another shape is no run", "[resume]") {
  for (const char* text : {"", "[]", "{}", R"({"steps":[]})", R"({"steps":7})"}) CHECK_FALSE(run_of_text(text));
}

}  // namespace
}  // namespace hdpsim
