// Ranks of a group that gather keys or trade heads, in place of passing keys around a ring.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/exec/executor.h"
#include "kernels/exec/requirements.h"
#include "kernels/spec/error.h"
#include "sim/plan/group_cut.h"
#include "tests/support/catch.h"
#include "tests/support/counting_transport.h"
#include "tests/support/kernels.h"
#include "tests/support/recompute_text.h"
#include "tests/support/reference_transformer.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

using Catch::Matchers::Contains;

const Way gathers{.key_exchange = KeyExchange::all_gather};
const Way trades{.key_exchange = KeyExchange::all_to_all};
const Way trades_in_pairs{.key_exchange = KeyExchange::all_to_all, .a2a_ranks = 2};

std::string text_of(const Way& way) {
  return fmt::format("{} among {}, tp {}, pp {}, recompute {}",
                     way.key_exchange == KeyExchange::all_gather   ? "all_gather"
                     : way.key_exchange == KeyExchange::all_to_all ? "a2a"
                                                                   : "p2p",
                     way.a2a_ranks, way.tp, way.pp, test::recompute_text(way.recompute));
}

std::vector<std::size_t> first_ranks(std::size_t count) {
  std::vector<std::size_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), std::size_t{0});
  return ranks;
}

// Every sequence of mixed_lengths on a group of all ranks, in two packs.
Plan on_all_ranks(std::size_t ranks, std::int64_t layers) {
  return hand_plan(static_cast<std::int64_t>(ranks), layers, mixed_lengths,
                   {{first_ranks(ranks), {0, 1, 2, 3}}, {first_ranks(ranks), {4, 5, 6, 7, 8, 9}}});
}

TEST_CASE("gathered keys and traded heads give loss and gradients of the whole batch in fp64", "[exec][sharing]") {
  for (const Transformer& model : {grouped_heads(), four_heads()}) {
    const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
    std::vector<float> start(static_cast<std::size_t>(ParameterLayout(model).count()));
    ParameterLayout(model).initial_values(TrainingOptions{}.seed, 0, start);
    const auto expected = ReferenceTransformer(model, start).step(mixed_lengths, 0, *tokens);
    for (const std::size_t ranks : {3U, 4U}) {
      for (const Way& way : {gathers, trades, trades_in_pairs}) {
        INFO(ranks << " ranks, " << model.kv_heads << " key-value heads, " << text_of(way));
        const Training found = train(model, on_all_ranks(ranks, model.layers), *tokens, way);
        CHECK(found.losses[0] == Approx(expected.loss).epsilon(1e-6));
        CHECK(test::relative_rms_error(found.gradients, expected.gradients) <= rounding);
      }
    }
  }
}

TEST_CASE("groups of other sizes and orders in one step share keys as each of them can", "[exec][sharing]") {
  const Transformer model = four_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 2);
  const Training one = train(model, one_rank_plan(model.layers, mixed_lengths), *tokens, Way{});
  const Plan plan =
      hand_plan(4, model.layers, mixed_lengths,
                {{{2, 0, 3, 1}, {0, 1, 2}}, {{3, 1}, {3, 4, 5}}, {{0, 2}, {6, 7}}, {{1}, {8}}, {{0, 2, 3}, {9}}});
  for (const Way& way : {gathers, trades, trades_in_pairs}) {
    INFO(text_of(way));
    check_same(train(model, plan, *tokens, way), one);
  }
}

TEST_CASE("a sequence shorter than its group leaves ranks without a token that gather and trade", "[exec][sharing]") {
  const Transformer model = four_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 1);
  const Training one = train(model, one_rank_plan(model.layers, {2, 1}), *tokens, Way{});
  for (const Way& way : {gathers, trades, trades_in_pairs}) {
    INFO(text_of(way));
    check_same(train(model, hand_plan(4, model.layers, {2, 1}, {{{0, 1, 2, 3}, {0, 1}}}), *tokens, way), one);
  }
}

TEST_CASE("random plans have the gradients of one rank, however keys are shared", "[exec][sharing][property]") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    INFO("replay: seed " << seed);
    RandomStream random(seed, "sharing");
    const Transformer model = random.below(2) == 0 ? grouped_heads() : four_heads();
    std::vector<std::int64_t> drawn(1 + random.below(8));
    for (std::int64_t& length : drawn) length = 1 + static_cast<std::int64_t>(random.below(70));
    const auto ranks = 1 + static_cast<std::int64_t>(random.below(8));
    const Plan plan = random_plan(random, ranks, model.layers, drawn);
    const auto tokens = make_synthetic_tokens(model.vocabulary, seed);
    const Training one = train(model, one_rank_plan(model.layers, drawn), *tokens, Way{});
    for (const Way& way : {gathers, trades, trades_in_pairs}) {
      INFO(text_of(way));
      check_same(train(model, plan, *tokens, way), one);
    }
  }
}

TEST_CASE("what is gathered and traded again, or was on the host, gives the same bits", "[exec][sharing][recompute]") {
  const Transformer model = four_heads(3);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Plan plan = hand_plan(4, model.layers, {50, 9, 31}, {{{0, 1, 2, 3}, {0, 1}}, {{0, 3}, {2}}});
  Plan offloading = plan;
  offloading.micro_batches[0].offload = 1;
  offloading.micro_batches[1].offload = 0.6;
  using enum LayerModule;
  for (Way way : {gathers, trades, trades_in_pairs}) {
    const Training kept = train(model, plan, *tokens, way);
    CHECK((train(model, plan, *tokens, way).parameters == kept.parameters));
    for (const Recompute recompute :
         {Recompute{}, Recompute::selective, Recompute::full, Recompute{qkv}, Recompute{attention, projection}}) {
      way.recompute = recompute;
      INFO(text_of(way));
      const Training again = train(model, offloading, *tokens, way);
      CHECK(again.losses == kept.losses);
      CHECK((again.gradients == kept.gradients));  // too many to print
    }
  }
}

TEST_CASE("keys are gathered and heads traded in stages of two tensor-parallel devices", "[exec][sharing][pp]") {
  const Transformer model = four_heads(4);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Training one = train(model, one_rank_plan(model.layers, mixed_lengths), *tokens, Way{});
  for (Way way : {gathers, trades}) {
    for (const auto& [tp, pp, schedule] : {std::tuple{2, 1, "1f1b"}, {1, 2, "1f1b"}, {2, 2, "zb-h1"}}) {
      way.tp = tp;
      way.pp = pp;
      way.pipeline.schedule = schedule;
      INFO(text_of(way) << ", " << schedule);
      check_same(train(model, on_all_ranks(2, model.layers), *tokens, way), one);
    }
  }
}

TEST_CASE("plans whose ranks attend for each other are refused", "[exec][sharing][served]") {
  const Transformer model = four_heads();
  Plan plan = on_all_ranks(2, model.layers);
  for (MicroBatch& micro_batch : plan.micro_batches) micro_batch.cut = TokenCut::served;
  CHECK_THROWS_WITH(
      train(model, plan, *make_synthetic_tokens(model.vocabulary, 5), Way{}),
      "ranks attend for each other in the plan, which is simulated, and not executed: choose another plan");
}

TEST_CASE("gathered keys serve packs that are cut as a whole, or in dealt chunks", "[exec][sharing][cut]") {
  const Transformer model = grouped_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Training one = train(model, one_rank_plan(model.layers, mixed_lengths), *tokens, Way{});
  for (const TokenCut cut : {TokenCut::per_pack, TokenCut::dispatch}) {
    for (const std::size_t ranks : {2U, 3U, 4U}) {
      INFO(ranks << " ranks, cut " << token_cut_words().at(static_cast<std::size_t>(cut)));
      Plan plan = on_all_ranks(ranks, model.layers);
      for (MicroBatch& micro_batch : plan.micro_batches) micro_batch.cut = cut;
      check_same(train(model, plan, *tokens, gathers), one);
    }
  }
}

TEST_CASE("ranks that hold sequences alone beside those that they share give the gradients of one rank",
          "[exec][sharing][local]") {
  const Transformer model = grouped_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 5);
  const Training one = train(model, one_rank_plan(model.layers, mixed_lengths), *tokens, Way{});
  const auto whole = [](std::initializer_list<std::size_t> sequences) {
    std::vector<Span> spans;
    for (const std::size_t s : sequences) spans.push_back({SequenceId(s), 0, mixed_lengths.at(s)});
    return spans;
  };
  for (const std::size_t ranks : {2U, 3U, 4U}) {
    Plan plan = on_all_ranks(ranks, model.layers);
    plan.micro_batches[0].spans = whole({1, 3});
    plan.micro_batches[0].local = {{0, whole({2})}, {ranks - 1, whole({0})}};
    plan.micro_batches[1].spans = whole({5});
    plan.micro_batches[1].local = {{1, whole({4, 6, 7, 8, 9})}};
    for (Way way : {Way{}, gathers}) {
      for (const Recompute recompute : {Recompute{}, Recompute::selective, Recompute::full}) {
        way.recompute = recompute;
        INFO(ranks << " ranks, " << text_of(way));
        check_same(train(model, plan, *tokens, way), one);
      }
    }
  }
}

// The bytes that rank 1 sends to others with each message of the passes, and those that their instructions state.
struct Messages {
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> stated;
};

Messages messages_of(const Transformer& model, const Plan& plan, const Way& way) {
  Messages messages;
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  run_ranks(static_cast<int>(plan.ranks), [&](Transport& transport) {
    const auto backend = make_cpu_backend();
    CountingTransport counting(transport);
    Executor executor(*backend, counting, model);
    const LoweringOptions lowering = lowering_for(*backend, model, way.mesh(plan.ranks), way.recipe());
    const Program program(plan, lowering);
    (void)executor.run_step(program, *tokens);
    if (transport.rank() != 1) return;
    for (const std::vector<Send>& started : counting.started) {
      std::int64_t bytes = 0;
      for (const Send& send : started) bytes += send.peer == 1 ? 0 : static_cast<std::int64_t>(send.bytes);
      messages.sent.push_back(bytes);
    }
    const MicroBatchProgram lowered = program.micro_batch(MicroBatchId(0));
    for (const Block& block : lowered.blocks) {
      for (const Instruction& i : block.body) {
        if (i.opcode == Opcode::exchange) messages.stated.push_back(lowered.bytes[i.work].count());
        if (i.opcode != Opcode::share) continue;
        const SharingCollective& op = lowered.shares[i.work];
        const std::int64_t parts = op.party(lowered.sharing);
        messages.stated.push_back(op.bytes.count() / parts * (parts - 1));
      }
    }
  });
  REQUIRE(messages.sent.size() > messages.stated.size());
  messages.sent.resize(messages.stated.size());  // then follow the step's end and the log
  return messages;
}

TEST_CASE("a collective of a group sends what its program says", "[exec][sharing]") {
  // 32 tokens divide by the 8 chunks: all ranks hold 8, a head of which is 64 fp32: 2,048 bytes.
  const Transformer model = grouped_heads(1);
  const Plan plan = hand_plan(4, 1, {32}, {{{0, 1, 2, 3}, {0}}});
  constexpr std::int64_t head = 8 * 64 * 4;
  // Keys and values of two heads to three others: forward, backward, and their gradients.
  const Messages gathered = messages_of(model, plan, gathers);
  CHECK(gathered.stated == std::vector<std::int64_t>(6, 3 * 2 * head));
  CHECK(gathered.sent == gathered.stated);
  // Half of four query heads and of two key-value heads to the other of a pair, and half of the outputs back; between
  // pairs the two tensors of one head of both ranks' tokens, and in backward their gradients, one step behind.
  const Messages traded = messages_of(model, plan, trades);
  constexpr std::int64_t ring = 2 * 2 * head;
  CHECK(traded.stated == std::vector<std::int64_t>{2 * head, head, head, ring, 2 * head,                // forward
                                                   2 * head, ring, ring, ring, 2 * head, head, head});  // backward
  CHECK(traded.sent == traded.stated);
}

TEST_CASE("the timeline has every instruction of a program that shares keys", "[exec][sharing][timeline]") {
  const Transformer model = four_heads(3);
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  for (const Way& way : {gathers, trades, trades_in_pairs}) {
    INFO(text_of(way));
    Plan plan = hand_plan(4, 3, {50, 20, 31}, {{{0, 1, 2, 3}, {0, 1}}, {{2, 1}, {2}}});
    if (way.key_exchange == KeyExchange::all_gather) plan.micro_batches[0].cut = TokenCut::per_pack;
    const Timeline timeline = train(model, plan, *tokens, way).timelines.at(0);
    const Program program(plan, lowering_for(Element::fp32, model, way.mesh(4), way.recipe()));
    std::multiset<std::string> expected;
    for (std::size_t id = 0; id < plan.micro_batches.size(); ++id) {
      const MicroBatchProgram lowered = program.micro_batch(MicroBatchId(id));
      for (const HdpRank rank : plan.micro_batches[id].group) {
        for (std::size_t b = 0; b < lowered.blocks.size(); ++b) {
          for (std::int64_t n = 0; n < lowered.blocks[b].iterations; ++n) {
            for (std::size_t i = 0; i < lowered.blocks[b].body.size(); ++i) {
              expected.insert(fmt::format("{} {} {} {} {} {}", rank.index(), id, b, n, i,
                                          opcode_name(lowered.blocks[b].body[i].opcode)));
            }
          }
        }
      }
    }
    std::multiset<std::string> found;
    for (const InstructionRecord& r : timeline.instructions) {
      found.insert(fmt::format("{} {} {} {} {} {}", r.rank.index(), r.micro_batch.index(), r.block, r.iteration,
                               r.instruction, opcode_name(r.opcode)));
      CHECK(r.begin <= r.end);
    }
    CHECK(found == expected);
    for (const Breakdown& rank : timeline.ranks) CHECK(rank.total() == timeline.step_time);
  }
}

// The tokens of a rank of which the second sequence cannot be read.
class LostTokens final : public TokenSource {
 public:
  [[nodiscard]] std::int64_t vocabulary() const override { return 61; }
  void read(std::int64_t, std::int64_t sequence, std::int64_t, std::span<std::int32_t> tokens) const override {
    if (sequence == 1) throw std::runtime_error("the data are gone");
    std::fill(tokens.begin(), tokens.end(), 1);
  }
};

TEST_CASE("a collective that a rank does not reach says which one, and of which ranks", "[exec][sharing]") {
  const Transformer model = four_heads();
  const Plan plan = hand_plan(2, model.layers, {20, 9}, {{{1}, {1}}, {{0, 1}, {0}}});  // rank 1 does not reach rank 0
  for (const auto& [way, collective] : {std::pair<Way, std::string>{gathers, "all_gather"}, {trades, "alltoall"}}) {
    INFO(text_of(way));
    std::string said;
    const auto run = [&, way = way](Transport& transport) {
      const auto backend = make_cpu_backend();
      Executor executor(*backend, transport, model);
      const Program program(plan, lowering_for(*backend, model, way.mesh(2), way.recipe()));
      try {
        (void)executor.run_step(program, LostTokens());
      } catch (const DeviceError& error) {
        if (transport.rank() == 0) said = error.what();
        throw;
      }
    };
    CHECK_THROWS_WITH(run_ranks(2, run), "the data are gone");
    CHECK_THAT(said, Contains("attention of ranks 0 1, " + collective));
  }
}

TEST_CASE("what no group can execute is refused with a way out", "[exec][sharing]") {
  CHECK_THROWS_WITH(require_executable(Recipe{.key_exchange = KeyExchange::group_cast}),
                    Contains("use cp_comm_type: all_gather, a2a or p2p"));
  CHECK_THROWS_WITH(require_executable(Recipe{.key_exchange = KeyExchange::query_ring}),
                    Contains("use cp_comm_type: p2p, all_gather or a2a"));
  const Transformer model = four_heads();
  const auto tokens = make_synthetic_tokens(model.vocabulary, 3);
  Plan plan = on_all_ranks(2, model.layers);
  Plan local = plan;
  local.micro_batches[0].local = {{0, {}}};
  CHECK_THROWS_WITH(require_executable(local, model, *tokens, 2, {}, KeyExchange::all_to_all),
                    Contains("choose cp_comm_type: p2p, or all_gather"));
  for (MicroBatch& micro_batch : plan.micro_batches) micro_batch.cut = TokenCut::per_pack;
  const auto reason = Contains("choose cp_cut: per_document, or cp_comm_type: all_gather");
  for (const KeyExchange way : {KeyExchange::ring, KeyExchange::all_to_all}) {
    CHECK_THROWS_WITH(require_executable(plan, model, *tokens, 2, {}, way), reason);
  }
  require_executable(plan, model, *tokens, 2, {}, KeyExchange::all_gather);
}

}  // namespace
}  // namespace hdpsim::kernels::exec
