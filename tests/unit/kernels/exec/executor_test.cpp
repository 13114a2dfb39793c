#include "kernels/exec/executor.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "kernels/spec/error.h"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/support/reference_transformer.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

using Catch::Matchers::Contains;

// A dot product of K terms in fp32 is off by about sqrt(K) 2^-24 of its size, sums behind each other add up in squares.
// Here K is at most a few hundred (tokens, widths) and a gradient has some tens of products behind it:
// sqrt(300 x 30) 2^-24 = 6e-6.
constexpr double rounding = 6e-6;

const std::vector<std::int64_t> lengths = {130, 7, 64, 1, 33, 16, 2, 90, 5, 41};

TEST_CASE("gradients and loss are those of the whole batch in fp64", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  std::vector<float> start(static_cast<std::size_t>(ParameterLayout(model).count()));
  ParameterLayout(model).initial_values(TrainingOptions{}.seed, 0, start);
  const auto expected = ReferenceTransformer(model, start).step(lengths, 0, *tokens);

  const Training one = train(model, {one_rank_plan(model.layers, lengths)}, *tokens);
  CHECK(one.losses[0] == Approx(expected.loss).epsilon(1e-6));
  CHECK(test::relative_rms_error(one.gradients, expected.gradients) <= rounding);

  const Plan ring =
      hand_plan(3, model.layers, lengths, {{{2, 0, 1}, {0, 1, 2, 3}}, {{1, 2}, {4, 5, 6, 7}}, {{0}, {8, 9}}});
  const Training three = train(model, {ring}, *tokens);
  CHECK(three.losses[0] == Approx(expected.loss).epsilon(1e-6));
  CHECK(test::relative_rms_error(three.gradients, expected.gradients) <= rounding);
}

TEST_CASE("tied embeddings gather the gradients of both their uses", "[exec]") {
  Transformer model = tiny_model(1);
  model.tied_embeddings = true;
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  std::vector<float> start(static_cast<std::size_t>(ParameterLayout(model).count()));
  ParameterLayout(model).initial_values(TrainingOptions{}.seed, 0, start);
  const auto expected = ReferenceTransformer(model, start).step({30, 12}, 0, *tokens);
  const Training trained = train(model, {hand_plan(2, 1, {30, 12}, {{{0, 1}, {0, 1}}})}, *tokens);
  CHECK(test::relative_rms_error(trained.gradients, expected.gradients) <= rounding);
}

TEST_CASE("every policy on any number of ranks has the gradients of one rank", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 1);
  const Training one = train(model, {one_rank_plan(model.layers, lengths)}, *tokens);
  for (const std::int64_t ranks : {1, 2, 3, 4, 8}) {
    for (const char* const policy : {"static", "hdp-naive", "hdp-balance"}) {
      INFO(policy << " on " << ranks << " ranks");
      const std::int64_t capacity = 130 / ranks + 17;
      const Plan plan = policy_plan(policy, ranks, model.layers, capacity, lengths);
      const Training many = train(model, {plan}, *tokens);
      CHECK(test::relative_rms_error(many.gradients, one.gradients) <= rounding);
      CHECK(many.losses[0] == Approx(one.losses[0]).epsilon(1e-6));
    }
  }
}

// Four heads, and a vocabulary and hidden size that four devices do not divide.
Transformer four_heads(std::int64_t layers = 2) {
  Transformer model = tiny_model(layers);
  model.heads = model.kv_heads = 4;
  return model;
}

// Rings of both ranks and packs of one; on one rank, two packs.
Plan packs_and_rings(std::int64_t hdp, std::int64_t layers) {
  if (hdp == 1) return hand_plan(1, layers, lengths, {{{0}, {0, 1, 2, 3}}, {{0}, {4, 5, 6, 7, 8, 9}}});
  return hand_plan(2, layers, lengths, {{{0, 1}, {0}}, {{1}, {1, 2, 3}}, {{1, 0}, {7, 8, 4}}, {{0}, {5, 6, 9}}});
}

TEST_CASE("tensor-parallel devices have the loss and the gradients of fp64, in packs and in rings", "[exec][tp]") {
  const Transformer model = four_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  std::vector<float> start(static_cast<std::size_t>(ParameterLayout(model).count()));
  ParameterLayout(model).initial_values(TrainingOptions{}.seed, 0, start);
  const auto expected = ReferenceTransformer(model, start).step(lengths, 0, *tokens);
  for (const int tp : {1, 2, 4}) {
    for (const std::int64_t hdp : {1, 2}) {
      INFO("tp " << tp << ", hdp " << hdp);
      const Training trained = train(model, packs_and_rings(hdp, model.layers), *tokens, {.tp = tp});
      CHECK(trained.losses[0] == Approx(expected.loss).epsilon(1e-6));
      CHECK(test::relative_rms_error(trained.gradients, expected.gradients) <= rounding);
    }
  }
}

TEST_CASE("tied embeddings and key-value heads of several query heads are cut too", "[exec][tp]") {
  Transformer model = tiny_model();
  model.heads = 4;
  model.kv_heads = 2;
  model.tied_embeddings = true;
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Training one = train(model, one_rank_plan(model.layers, {30, 12}), *tokens, Way{});
  const Training two = train(model, hand_plan(2, model.layers, {30, 12}, {{{0, 1}, {0, 1}}}), *tokens, {.tp = 2});
  CHECK(test::relative_rms_error(two.gradients, one.gradients) <= rounding);
}

TEST_CASE("devices without a token or a word of their own have their part all the same", "[exec][tp]") {
  Transformer model = four_heads(1);
  model.vocabulary = 5;  // two words each: the last of four devices has none
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  for (const std::vector<std::int64_t>& few : {std::vector<std::int64_t>{2}, {1}, {5, 1}}) {
    const Training one = train(model, one_rank_plan(1, few), *tokens, Way{});
    const Training four = train(model, one_rank_plan(1, few), *tokens, {.tp = 4});
    CHECK(four.losses[0] == Approx(one.losses[0]).epsilon(1e-6));
    CHECK(test::relative_rms_error(four.gradients, one.gradients) <= rounding);
  }
}

TEST_CASE("training goes the same way on any number of tensor-parallel devices", "[exec][tp]") {
  const Transformer model = four_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  std::vector<Plan> plans(4, packs_and_rings(2, model.layers));
  for (std::size_t step = 0; step < plans.size(); ++step) plans[step].step = static_cast<std::int64_t>(step);
  const TrainingOptions options{.seed = 1, .adam = {.rate = 1e-3F}};
  const Training one = train(model, plans, *tokens, options);
  const Training two = train(model, plans, *tokens, options, default_time_limit, {.tp = 2});
  for (std::size_t step = 0; step < plans.size(); ++step) {
    CHECK(two.losses[step] == Approx(one.losses[step]).epsilon(1e-5));
  }
  const auto twice = train(model, plans, *tokens, options, default_time_limit, {.tp = 2});
  CHECK(twice.parameters == two.parameters);
}

TEST_CASE("what is computed again gives the same bits", "[exec][recompute]") {
  const Transformer model = four_heads(3);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  for (const int tp : {1, 2}) {
    for (const std::int64_t hdp : {1, 2}) {
      INFO("tp " << tp << ", hdp " << hdp);
      const Plan plan = packs_and_rings(hdp, model.layers);
      const Training kept = train(model, plan, *tokens, {.tp = tp});
      for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
        const Training again = train(model, plan, *tokens, {.tp = tp, .recompute = recompute});
        CHECK(again.losses == kept.losses);
        CHECK(again.gradients == kept.gradients);
      }
    }
  }
}

// ---- Offload

// Other shares for unlike micro-batches; one has none.
Plan offloading(Plan plan) {
  const double shares[] = {1, 0.5, 0, 0.8};
  for (std::size_t i = 0; i < plan.micro_batches.size(); ++i) plan.micro_batches[i].offload = shares[i % 4];
  return plan;
}

TEST_CASE("activations that were on the host give the same bits", "[exec][offload]") {
  for (const std::int64_t layers : {2, 3, 6}) {
    const Transformer model = four_heads(layers);
    const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
    for (const auto& [hdp, way] : {std::pair<std::int64_t, Way>{1, {}},
                                   {2, {}},
                                   {2, {.tp = 2}},
                                   {2, {.recompute = Recompute::selective}},
                                   {2, {.recompute = Recompute::full}}}) {
      INFO(layers << " layers, hdp " << hdp << ", tp " << way.tp << ", recompute "
                  << recompute_names[static_cast<std::size_t>(way.recompute)]);
      const Plan plan = packs_and_rings(hdp, layers);
      const Training stays = train(model, plan, *tokens, way);
      const Training travels = train(model, offloading(plan), *tokens, way);
      CHECK(travels.losses == stays.losses);
      CHECK(travels.gradients == stays.gradients);
    }
  }
}

TEST_CASE("copies run beside what computes: out in the order of layers, and back last in first out",
          "[exec][offload]") {
  constexpr std::int64_t layers = 6;
  const Transformer model = four_heads(layers);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  Plan plan = one_rank_plan(layers, {400, 50});
  plan.micro_batches[0].offload = 1;
  const Timeline timeline = train(model, {plan}, *tokens).timelines.at(0);
  CHECK(timeline.ranks[0].total() == timeline.step_time);

  std::vector<const InstructionRecord*> out;
  std::vector<const InstructionRecord*> back;
  for (const InstructionRecord& record : timeline.instructions) {
    if (record.stream == Stream::d2h) out.push_back(&record);
    if (record.stream == Stream::h2d) back.push_back(&record);
    CHECK(record.begin <= record.end);
  }
  // Layers 0 to 3 of 6, which backward reaches in its iterations 2 to 5.
  const auto iterations = [](const std::vector<const InstructionRecord*>& records) {
    std::vector<std::uint32_t> found;
    for (const InstructionRecord* const record : records) found.push_back(record->iteration);
    return found;
  };
  CHECK(iterations(out) == std::vector<std::uint32_t>{0, 1, 2, 3});
  CHECK(iterations(back) == std::vector<std::uint32_t>{2, 3, 4, 5});
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<InstructionRecord>> computed;  // by block and iteration
  for (const InstructionRecord& record : timeline.instructions) {
    if (record.stream == Stream::compute) computed[{record.block, record.iteration}].push_back(record);
  }
  // A layer takes the place of that two before it, which must have gone; and needs what it has kept.
  for (const InstructionRecord* const record : out) {
    CHECK(record->begin >= computed.at({record->block, record->iteration}).back().end);
    CHECK(record->end <= computed.at({record->block, record->iteration + 2}).front().begin);
  }
  for (const InstructionRecord* const record : back) {
    CHECK(record->begin >= computed.at({record->block, record->iteration - 2}).back().end);
    CHECK(record->end <= computed.at({record->block, record->iteration}).front().begin);
  }
}

TEST_CASE("unequal numbers of micro-batches weigh every token the same", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 1);
  const Training one = train(model, {one_rank_plan(model.layers, {40, 3, 3, 3, 9})}, *tokens);
  const Plan plan = hand_plan(3, model.layers, {40, 3, 3, 3, 9},
                              {{{0}, {0}}, {{1}, {1}}, {{1}, {2}}, {{1}, {3}}, {{1}, {4}}});  // rank 2 has nothing
  const Training three = train(model, {plan}, *tokens);
  CHECK(test::relative_rms_error(three.gradients, one.gradients) <= rounding);
  CHECK(three.losses[0] == Approx(one.losses[0]).epsilon(1e-6));
}

TEST_CASE("a sequence shorter than its ring leaves ranks without a token", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 1);
  const Training one = train(model, {one_rank_plan(model.layers, {2, 1})}, *tokens);
  const Training five = train(model, {hand_plan(5, model.layers, {2, 1}, {{{0, 1, 2, 3, 4}, {0, 1}}})}, *tokens);
  CHECK(test::relative_rms_error(five.gradients, one.gradients) <= rounding);
}

TEST_CASE("random plans of random batches have the gradients of one rank", "[exec][property]") {
  const Transformer model = tiny_model();
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    INFO("replay: seed " << seed);
    RandomStream random(seed, "execution");
    std::vector<std::int64_t> drawn(1 + random.below(8));
    for (std::int64_t& length : drawn) length = 1 + static_cast<std::int64_t>(random.below(70));
    const auto ranks = 1 + static_cast<std::int64_t>(random.below(8));
    const Plan plan = random_plan(random, ranks, model.layers, drawn);
    const auto tokens = make_synthetic_tokens(model.vocabulary, seed);
    const Training one = train(model, {one_rank_plan(model.layers, drawn)}, *tokens);
    const Training many = train(model, {plan}, *tokens);
    CHECK(test::relative_rms_error(many.gradients, one.gradients) <= rounding);
  }
}

TEST_CASE("training goes the same way under every policy, and down", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  std::vector<std::vector<double>> losses;
  for (const char* const policy : {"static", "hdp-naive", "hdp-balance"}) {
    std::vector<Plan> plans(6, policy_plan(policy, 4, model.layers, 50, lengths));
    for (std::size_t step = 0; step < plans.size(); ++step) plans[step].step = static_cast<std::int64_t>(step);
    losses.push_back(train(model, plans, *tokens, {.seed = 1, .adam = {.rate = 1e-3F}}).losses);
  }
  CHECK(losses[0].back() < losses[0].front() - 0.02);
  for (std::size_t step = 0; step < losses[0].size(); ++step) {
    INFO("step " << step);
    CHECK(losses[1][step] == Approx(losses[0][step]).epsilon(1e-5));
    CHECK(losses[2][step] == Approx(losses[0][step]).epsilon(1e-5));
  }
}

TEST_CASE("training takes the way that fp64 takes", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 8);
  const TrainingOptions options{.seed = 2, .adam = {.rate = 0.002F, .epsilon = 1e-6F, .decay = 0.1F}};
  const auto count = static_cast<std::size_t>(ParameterLayout(model).count());
  std::vector<float> start(count);
  ParameterLayout(model).initial_values(options.seed, 0, start);
  std::vector<double> master(start.begin(), start.end());
  std::vector<double> first_moment(count);
  std::vector<double> second_moment(count);
  std::vector<Plan> plans(5, hand_plan(2, model.layers, {60, 31}, {{{0, 1}, {0}}, {{1}, {1}}}));
  std::vector<double> expected;
  for (std::size_t step = 0; step < plans.size(); ++step) {
    plans[step].step = static_cast<std::int64_t>(step);
    const std::vector<float> rounded(master.begin(), master.end());
    const auto taken = ReferenceTransformer(model, rounded).step({60, 31}, plans[step].step, *tokens);
    expected.push_back(taken.loss);
    const Adam adam{.step = plans[step].step + 1,
                    .rate = options.adam.rate,
                    .beta1 = options.adam.beta1,
                    .beta2 = options.adam.beta2,
                    .epsilon = options.adam.epsilon,
                    .decay = options.adam.decay};
    reference::adam(adam, master, first_moment, second_moment, taken.gradients);
  }
  const Training trained = train(model, plans, *tokens, options);
  // Adam divides by the size of the gradient: where that is near epsilon, rounding moves a parameter.
  for (std::size_t step = 0; step < plans.size(); ++step) {
    CHECK(trained.losses[step] == Approx(expected[step]).epsilon(1e-5));
  }
  CHECK(expected.back() < expected.front() - 0.05);
}

TEST_CASE("the same plan gives the same bits", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = hand_plan(3, model.layers, {50, 20, 31}, {{{0, 1, 2}, {0}}, {{2, 1}, {1}}, {{0}, {2}}});
  const Training first = train(model, {plan, plan}, *tokens);
  const Training second = train(model, {plan, plan}, *tokens);
  CHECK(first.parameters == second.parameters);
  CHECK(first.losses == second.losses);
}

TEST_CASE("after one step every parameter has moved by the rate, in the direction of its gradient", "[exec]") {
  // Adam's first step: m / (1 - b1) = g, v / (1 - b2) = g^2, so p moves by rate x sign(g), but for epsilon.
  const Transformer model = tiny_model(1);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const TrainingOptions options{.seed = 4, .adam = {.rate = 0.01F, .epsilon = 0}};
  const Training trained = train(model, {hand_plan(3, 1, {50, 20}, {{{0, 1, 2}, {0, 1}}})}, *tokens, options);
  std::vector<float> start(trained.parameters.size());
  ParameterLayout(model).initial_values(4, 0, start);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < start.size(); ++i) {
    const float gradient = trained.gradients[i];
    const float expected = gradient > 0 ? start[i] - 0.01F : gradient < 0 ? start[i] + 0.01F : start[i];
    // Without epsilon, a gradient of zero is 0 / 0; so small that its square is none, it is x / 0.
    if (std::abs(gradient) < 1e-15F) continue;
    if (!(std::abs(trained.parameters[i] - expected) <= 1e-6F)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("the timeline has every instruction of every rank's programs once, in order", "[exec]") {
  const Transformer model = tiny_model(3);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = hand_plan(3, 3, {50, 20, 31}, {{{0, 1, 2}, {0}}, {{2, 1}, {1}}, {{0}, {2}}});
  const Timeline timeline = train(model, {plan}, *tokens).timelines.at(0);

  LoweringOptions lowering{.model = model, .mesh = Mesh{.hdp = 3}};
  lowering.separate_merge = false;
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
  class Counting final : public Transport {
   public:
    explicit Counting(Transport& transport) : transport_(transport) {}
    [[nodiscard]] int rank() const override { return transport_.rank(); }
    [[nodiscard]] int size() const override { return transport_.size(); }
    [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override {
      std::size_t bytes = 0;
      for (const Send& send : sends) bytes += send.bytes;
      sent.push_back(static_cast<std::int64_t>(bytes));
      return transport_.start(sends, receives);
    }
    void wait(Ticket ticket) override { transport_.wait(ticket); }
    void progress() override { transport_.progress(); }
    void all_reduce(float* data, std::size_t count) override { transport_.all_reduce(data, count); }
    void all_gather(const void* mine, void* all, std::size_t bytes) override {
      transport_.all_gather(mine, all, bytes);
    }
    void reduce_scatter(const float* all, float* mine, std::size_t n) override {
      transport_.reduce_scatter(all, mine, n);
    }
    void all_to_all(const void* from, void* to, std::size_t bytes) override { transport_.all_to_all(from, to, bytes); }
    void barrier() override { transport_.barrier(); }
    std::vector<std::int64_t> sent;

   private:
    Transport& transport_;
  };
  const Transformer model = tiny_model(1);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = hand_plan(3, 1, {24}, {{{0, 1, 2}, {0}}});
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> expected;
  run_ranks(3, [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    Counting counting(transport);
    Executor executor(*backend, counting, model);
    const LoweringOptions lowering = lowering_for(*backend, model, {.hdp = 3});
    const Program program(plan, lowering);
    (void)executor.run_step(program, *tokens);
    if (transport.rank() != 1) return;
    sent = counting.sent;
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
  constexpr std::chrono::milliseconds late(20);
  Timeline timeline;
  run_ranks(2, [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    Executor executor(*backend, transport, model);
    const LoweringOptions lowering = lowering_for(*backend, model, 2);
    const Program program(plan, lowering);
    const ProgramSource source = [&]() -> const Program& {
      if (transport.rank() == 1) std::this_thread::sleep_for(late);
      return program;
    };
    StepOutcome outcome = executor.run_step(source, *tokens);
    if (outcome.timeline) timeline = std::move(*outcome.timeline);
  });
  REQUIRE(timeline.ranks.size() == 2);
  CHECK(timeline.ranks[1][Activity::data_wait] >= Duration::seconds(0.02));
  CHECK(timeline.ranks[0][Activity::data_wait] < timeline.ranks[1][Activity::data_wait]);
  for (const Breakdown& rank : timeline.ranks) CHECK(rank.total() == timeline.step_time);
}

// ---- What cannot be executed, and what goes wrong

class FaultyTokens final : public TokenSource {
 public:
  explicit FaultyTokens(void (*fault)()) : fault_(fault) {}
  [[nodiscard]] std::int64_t vocabulary() const override { return 61; }
  void read(std::int64_t, std::int64_t sequence, std::int64_t, std::span<std::int32_t> tokens) const override {
    if (sequence == 1) fault_();
    std::fill(tokens.begin(), tokens.end(), 1);
  }

 private:
  void (*fault_)();
};

TEST_CASE("a plan for another number of ranks or another model is refused by name", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const auto run = [&](const Plan& plan, const TokenSource& source) {
    run_ranks(2, [&](Transport& transport) {
      const auto backend = make_cpu_backend();
      Executor executor(*backend, transport, model);
      const LoweringOptions lowering = lowering_for(*backend, model, {.hdp = plan.ranks});
      (void)executor.run_step(Program(plan, lowering), source);
    });
  };
  CHECK_THROWS_WITH(run(hand_plan(3, 2, {9}, {{{0}, {0}}}), *tokens),
                    Contains("the plan is for 3 ranks, but there are 2"));
  CHECK_THROWS_WITH(run(hand_plan(2, 5, {9}, {{{0}, {0}}}), *tokens),
                    Contains("the plan is for a model of 5 layers, 'tiny' has 2"));
  CHECK_THROWS_WITH(run(hand_plan(2, 2, {9}, {{{0}, {0}}}), *make_synthetic_tokens(99, 1)),
                    Contains("the data have a vocabulary of 99, 'tiny' has one of 61"));
}

TEST_CASE("what tensor-parallel devices cannot share is refused by name", "[exec][tp]") {
  Transformer model = tiny_model();
  model.ffn_hidden = 101;
  CHECK_THROWS_WITH(ParameterLayout(model, {0, 2}),
                    "model 'tiny' cannot be executed: its 1 key-value heads do not divide among 2 devices, its 101 "
                    "columns of its MLP do not divide among 2 devices");
  const auto executor_of = [](int tp) {
    run_ranks(3, [&](Transport& transport) {
      const auto backend = make_cpu_backend();
      const Executor executor(*backend, transport, four_heads(), TrainingOptions{.adam = {}, .tp = tp});
    });
  };
  CHECK_THROWS_WITH(executor_of(2), "3 ranks are no whole number of HDP ranks of 2 devices");
  const auto tokens = make_synthetic_tokens(61, 1);
  const auto run_as_tp_1 = [&] {
    run_ranks(2, [&](Transport& transport) {
      const auto backend = make_cpu_backend();
      Executor executor(*backend, transport, four_heads(), TrainingOptions{.adam = {}, .tp = 2});
      const LoweringOptions lowering = lowering_for(*backend, four_heads(), {.hdp = 1});
      (void)executor.run_step(Program(one_rank_plan(2, {9}), lowering), *tokens);
    });
  };
  CHECK_THROWS_WITH(run_as_tp_1(), "the program is for tp 1, but ranks have 2 devices");
}

TEST_CASE("all that a model has and the executor has not is named at once", "[exec]") {
  Transformer model = tiny_model();
  model.biases = true;
  model.learned_positions = 10;
  model.gated_mlp = false;
  model.head_dim = 36;
  CHECK_THROWS_WITH(ParameterLayout(model),
                    "model 'tiny' cannot be executed: it has biases, its positions are learned, its MLP has no gate, "
                    "its heads have dimension 36, not 64 or 128");
}

TEST_CASE("a loss that is no number ends the step on every rank, before the parameters change", "[exec]") {
  const Transformer model = tiny_model();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = hand_plan(2, 2, {9, 9}, {{{0}, {0}}, {{1}, {1}}});
  std::mutex mutex;
  std::vector<std::string> said;
  run_ranks(2, [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    const TrainingOptions poisoned{.seed = 1, .adam = {.rate = std::numeric_limits<float>::infinity()}};
    Executor executor(*backend, transport, model, poisoned);
    const LoweringOptions lowering = lowering_for(*backend, model, {.hdp = 2});
    (void)executor.run_step(Program(plan, lowering), *tokens);
    try {
      (void)executor.run_step(Program(plan, lowering), *tokens);
    } catch (const DeviceError& error) {
      const std::lock_guard lock(mutex);
      said.emplace_back(error.what());
    }
  });
  REQUIRE(said.size() == 2);
  CHECK_THAT(said[0], Contains("the loss of step 0 is") && Contains("nan"));
  CHECK(said[0] == said[1]);
}

TEST_CASE("a rank that fails or hangs ends the others, within the time limit", "[exec]") {
  const Transformer model = tiny_model();
  const Plan plan = hand_plan(3, 2, {30, 9}, {{{0, 1, 2}, {0}}, {{1}, {1}}});
  const FaultyTokens failing([] { throw std::runtime_error("the data are gone"); });
  CHECK_THROWS_WITH(train(model, {plan}, failing), "the data are gone");
  const FaultyTokens hanging([] { std::this_thread::sleep_for(std::chrono::milliseconds(1500)); });
  CHECK_THROWS_WITH(train(model, {plan}, hanging, {}, std::chrono::milliseconds(300)),
                    Contains("nothing has moved for 0.3 s"));
}

TEST_CASE("when one rank is asked to stop, all know", "[exec]") {
  const Transformer model = tiny_model(1);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  const Plan plan = hand_plan(2, 1, {9}, {{{0, 1}, {0}}});
  std::atomic<int> told = 0;
  run_ranks(2, [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    Executor executor(*backend, transport, model);
    const LoweringOptions lowering = lowering_for(*backend, model, {.hdp = 2});
    if (executor.run_step(Program(plan, lowering), *tokens).stopped) told += 10;
    if (executor.run_step(Program(plan, lowering), *tokens, transport.rank() == 1).stopped) ++told;
  });
  CHECK(told == 2);
}

}  // namespace
}  // namespace hdpsim::kernels::exec
