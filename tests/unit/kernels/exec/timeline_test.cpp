#include <fmt/format.h>

#include <chrono>
#include <set>
#include <thread>

#include "kernels/exec/executor.h"
#include "tests/support/catch.h"
#include "tests/support/counting_transport.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

TEST_CASE("the timeline has every instruction of every rank's programs once, in order", "[exec]") {
  const Transformer model = tiny_model(3);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = hand_plan(3, 3, {50, 20, 31}, {{{0, 1, 2}, {0}}, {{2, 1}, {1}}, {{0}, {2}}});
  const Timeline timeline = train(model, {plan}, *tokens).timelines.at(0);

  LoweringOptions lowering{.model = model, .mesh = Mesh{.hdp = 3}};
  lowering.recipe.separate_merge = false;
  const Program program(plan, lowering);
  std::multiset<std::string> expected;
  for (std::size_t id = 0; id < plan.micro_batches.size(); ++id) {
    const MicroBatchProgram lowered = program.micro_batch(MicroBatchId(id));
    for (const HdpRank rank : plan.micro_batches[id].group) {
      for (std::size_t b = 0; b < lowered.blocks.size(); ++b) {
        for (std::int64_t n = 0; n < lowered.blocks[b].iterations; ++n) {
          for (std::size_t i = 0; i < lowered.blocks[b].body.size(); ++i) {
            expected.insert(fmt::format("{} {} {} {} {} {}", rank.index(), id, b, n, i,
                                        static_cast<int>(lowered.blocks[b].body[i].opcode)));
          }
        }
      }
    }
  }
  std::multiset<std::string> found;
  for (const InstructionRecord& r : timeline.instructions) {
    found.insert(fmt::format("{} {} {} {} {} {}", r.rank.index(), r.micro_batch.index(), r.block, r.iteration,
                             r.instruction, static_cast<int>(r.opcode)));
    CHECK(r.begin <= r.end);
    CHECK(r.end.since_start() <= timeline.step_time);
  }
  CHECK(found == expected);
}

TEST_CASE("every rank's times sum to the step, and what computes does not overlap", "[exec]") {
  const Transformer model = tiny_model(3);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = hand_plan(2, 3, {300, 20, 31}, {{{0, 1}, {0}}, {{1}, {1}}, {{0}, {2}}});
  const Timeline timeline = train(model, {plan}, *tokens).timelines.at(0);
  REQUIRE(timeline.ranks.size() == 2);
  for (const Breakdown& rank : timeline.ranks) {
    CHECK(rank.total() == timeline.step_time);
    for (const Activity activity : {Activity::attention, Activity::linear, Activity::optimizer, Activity::grad_sync}) {
      CHECK(rank[activity] > Duration{});
    }
  }
  for (std::size_t i = 1; i < timeline.instructions.size(); ++i) {
    const InstructionRecord& before = timeline.instructions[i - 1];
    const InstructionRecord& next = timeline.instructions[i];
    if (before.rank != next.rank || before.opcode == Opcode::exchange || next.opcode == Opcode::exchange) continue;
    CHECK(before.end <= next.begin);
  }
  for (std::size_t id = 0; id < plan.micro_batches.size(); ++id) {
    CHECK(timeline.micro_batches[id].begin < timeline.micro_batches[id].end);
  }
}

TEST_CASE("a message of a ring has the bytes that its program says", "[exec]") {
  // 24 tokens divide by the 6 chunks: all ranks hold 8. The program's bytes are those of a rank's tokens.
  const Transformer model = tiny_model(1);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = hand_plan(3, 1, {24}, {{{0, 1, 2}, {0}}});
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> expected;
  run_ranks(3, [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    CountingTransport counting(transport);
    Executor executor(*backend, counting, model);
    const LoweringOptions lowering = lowering_for(*backend, model, {.hdp = 3});
    const Program program(plan, lowering);
    (void)executor.run_step(program, *tokens);
    if (transport.rank() != 1) return;
    for (const std::vector<Send>& messages : counting.started) {
      std::int64_t bytes = 0;
      for (const Send& message : messages) bytes += static_cast<std::int64_t>(message.bytes);
      sent.push_back(bytes);
    }
    const MicroBatchProgram lowered = program.micro_batch(MicroBatchId(0));
    for (const Block& block : lowered.blocks) {
      for (const Instruction& i : block.body) {
        if (i.opcode == Opcode::exchange) expected.push_back(lowered.bytes[i.work].count());
      }
    }
  });
  REQUIRE(sent.size() > expected.size());
  sent.resize(expected.size());  // then follow the step's end and the log
  CHECK(expected == std::vector<std::int64_t>{4096, 4096, 4096, 8192, 4096, 4096});
  CHECK(sent == expected);
}

TEST_CASE("what a rank waits for its program belongs to the step, as data_wait", "[exec]") {
  const Transformer model = tiny_model(1);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = hand_plan(2, 1, {24}, {{{0, 1}, {0}}});
  std::chrono::duration<double> waited{};  // of rank 1, by a clock within what the executor times
  Timeline timeline;
  run_ranks(2, [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    Executor executor(*backend, transport, model);
    const LoweringOptions lowering = lowering_for(*backend, model, {.hdp = 2});
    const Program program(plan, lowering);
    const ProgramSource source = [&]() -> const Program& {
      if (transport.rank() == 0) return program;
      const auto asked = std::chrono::steady_clock::now();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      waited = std::chrono::steady_clock::now() - asked;
      return program;
    };
    StepOutcome outcome = executor.run_step(source, *tokens);
    if (outcome.timeline) timeline = std::move(*outcome.timeline);
  });
  REQUIRE(timeline.ranks.size() == 2);
  CHECK(timeline.ranks[1][Activity::data_wait] >= Duration::seconds(waited.count()));
  CHECK(timeline.ranks[0][Activity::data_wait] < timeline.ranks[1][Activity::data_wait]);
  for (const Breakdown& rank : timeline.ranks) CHECK(rank.total() == timeline.step_time);
}

}  // namespace
}  // namespace hdpsim::kernels::exec
