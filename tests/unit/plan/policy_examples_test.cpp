#include "tests/support/catch.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

using Lengths = std::vector<std::int64_t>;

/// A pool for sequences up to `longest` tokens.
PlanningContext pool(std::int64_t ranks, std::int64_t longest) {
  PlanningContext context = small_pool(ranks);
  context.context = longest;
  return context;
}

/// The same, in which attention alone counts, a second a pair.
PlanningContext attending_pool(std::int64_t ranks, std::int64_t longest) {
  PlanningContext context = pool(ranks, longest);
  context.work = {};
  context.work.per_area = 1;
  return context;
}

/// A pool of ranks with 2,000 tokens each and a fixed time of a micro-batch.
PlanningContext roomy_pool() {
  return with(small_pool(), [](PlanningContext& context) {
    context.capacity = 2000;
    context.context = 16000;
    context.work.per_micro_batch = 10;
  });
}

Lengths repeated(std::size_t times, std::int64_t tokens, Lengths others = {}) {
  others.insert(others.begin(), times, tokens);
  return others;
}

struct Example {
  const char* rule;
  const char* entry;
  PlanningContext context;
  Lengths lengths;
  const char* plan;  ///< As micro_batches_text() writes it.
};

const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"cp auto is the smallest divisor of the pool that holds the context: three ranks do not divide 8",
       "static",
       pool(8, 250),
       {250},
       "0-3: [0]"},
      {"cp auto, exactly", "static: {cp: auto}", pool(8, 200), {200}, "0-1: [0]"},
      {"cp auto, one token more, whatever the batch", "static", pool(8, 201), {1}, "0-3: [0]"},
      {"a larger cp than needed is the user's choice", "static: {cp: 8}", small_pool(), {10}, "0-7: [0]"},
      {"packs go round the data-parallel groups, every pack over all ranks of its group",
       "static: {cp: 4}",
       pool(8, 400),
       {400, 390, 380, 370, 360},
       "0-3: [0] | 4-7: [1] | 0-3: [2] | 4-7: [3] | 0-3: [4]"},
      {"short sequences are packed up to the context, not up to what two ranks could hold",
       "static",
       pool(8, 150),
       {90, 80, 60, 70},
       "0-1: [0, 2] | 2-3: [1, 3]"},
      {"packs in the order of the data",
       "static: {order: data}",
       pool(8, 400),
       {200, 300, 400},
       "0-3: [0] | 4-7: [1] | 0-3: [2]"},
      {"packs by their longest sequence",
       "static: {order: descending}",
       pool(8, 400),
       {200, 300, 400},
       "0-3: [2] | 4-7: [1] | 0-3: [0]"},
      {"next_fit packs and deals in the order of the data: 120, 90 + 80 and 110",
       "static: {cp: 2, packing: next_fit}",
       small_pool(2),
       {120, 90, 80, 110},
       "0-1: [0] | 0-1: [1, 2] | 0-1: [3]"},
      {"grain closes both of its open packs, 120 + 80 and 90 + 20, for 110 that fits into neither",
       "static: {cp: 2, packing: grain, window: 2, max_sequences: 2}",
       small_pool(2),
       {120, 90, 80, 20, 110, 10},
       "0-1: [0, 2] | 0-1: [1, 3] | 0-1: [4, 5]"},
      {"where best fit makes two packs of 200",
       "static: {cp: 2}",
       small_pool(2),
       {120, 90, 80, 110},
       "0-1: [0, 2] | 0-1: [3, 1]"},

      {"consecutive ranks are filled in data order, and a full wave ends",
       "hdp-naive",
       small_pool(),
       {300, 100, 400, 200},
       "0-2: [0] | 3: [1] | 4-7: [2] | 0-1: [3]"},
      {"what does not fit the rest of a wave starts another, and later sequences fill the gap and what is behind the "
       "400",
       "hdp-naive",
       small_pool(),
       {500, 400, 300, 100},
       "0-4: [0] | 5-7: [2] | 0-3: [1] | 4: [3]"},
      {"shorter sequences are best-fit packed to C on one rank each",
       "hdp-naive",
       small_pool(),
       {60, 50, 45, 40},
       "0: [0, 3] | 1: [1, 2]"},
      {"the longest first",
       "hdp-naive: {order: descending}",
       small_pool(),
       {100, 300, 400},
       "0-3: [2] | 4-6: [1] | 7: [0]"},

      {"longest first onto the least loaded rank: 50 | 40, then 40 + 30, 50 + 20, and 10 to either of the two at 70",
       "hdp-balance: {search: none}",
       small_pool(2),
       {10, 20, 30, 40, 50},
       "0: [4, 1, 0] | 1: [3, 2]"},
      {"ranks with costly sequences get fewer tokens: 100 have 5050 pairs, eight of 35 have 8 x 630",
       "hdp-balance: {search: none}",
       attending_pool(2, 200),
       {35, 35, 35, 35, 100, 35, 35, 35, 35},
       "0: [4] | 1: [8, 7] | 1: [6, 5] | 1: [3, 2] | 1: [1, 0]"},
      {"a rank's short sequences are packed to C",
       "hdp-balance: {search: none}",
       with(small_pool(1), [](PlanningContext& context) { context.work.per_micro_batch = 7; }),
       {60, 50, 45, 40},
       "0: [0, 3] | 0: [1, 2]"},
      {"a ring takes whole nodes, or one part of a node",
       "hdp-balance: {search: none}",
       small_pool(),
       {300, 400},
       "0-3: [1] | 4-6: [0]"},
      {"placement any: 200 straddle rank 5, which is left of node 1, and rank 6",
       "hdp-balance: {placement: any, search: none}",
       small_pool(),
       {500, 200, 190},
       "0-4: [0] | 5-6: [1] | 0,7: [2]"},
      {"node-first keeps a ring of a node's size out of the remainders of others",
       "hdp-balance: {search: none}",
       with(small_pool(12), [](PlanningContext& context) { context.work.per_area = 1; }),
       {600, 390},
       "0-5: [0] | 8-11: [1]"},
      {"and placement any does not",
       "hdp-balance: {placement: any, search: none}",
       with(small_pool(12), [](PlanningContext& context) { context.work.per_area = 1; }),
       {600, 390},
       "0-5: [0] | 6-9: [1]"},
      // The ring of 500 takes five of the ranks that wait least, so that the idle two are free for four times 200:
      // 4 x 10,050 s beside 30,050 + 25,050 s.
      {"too few targets are joined by the least loaded ranks",
       "hdp-balance: {placement: any, search: none}",
       attending_pool(8, 800),
       {600, 500, 200, 200, 200, 200},
       "0-5: [0] | 0-4: [1] | 6-7: [2] | 6-7: [3] | 6-7: [4] | 5-6: [5]"},
      // The step is 600's and 500's rings, one after the other, whoever runs the second. With the idle ranks in it, the
      // first rank is done at 30,050 s; without them, at 0.
      {"of two plans of one length, that in which the ranks end together is taken",
       "hdp-balance: {search: none}",
       attending_pool(8, 800),
       {600, 500},
       "0-5: [0] | 0-2,6-7: [1]"},
      // Two ranks for 3000 leave room for 1000. 900 is the longest that fits; 512 = 2 ranks x 2 parts x 128 rows would
      // be the least, so that the 80 left over stay empty.
      {"short sequences fill the room that ceil(s / C) leaves in a ring",
       "hdp-balance: {search: none}",
       roomy_pool(),
       {3000, 1100, 900, 80},
       "0-1: [0, 2] | 2: [1] | 3: [3]"},
      {"unless they are to stay apart",
       "hdp-balance: {pack_groups: false, search: none}",
       roomy_pool(),
       {3000, 1100, 900, 80},
       "0-1: [0] | 2: [1] | 3: [2] | 4: [3]"},
      {"nothing joins a ring that is bound by its transfers, in which every token shows",
       "hdp-balance: {search: none}",
       with(roomy_pool(), [](PlanningContext& context) { context.work.per_ring_token = 100; }),
       {3000, 900},
       "0-1: [0] | 2: [1]"},
      {"a sequence that bounds the step has the fewest ranks",
       "hdp-balance: {search: none}",
       attending_pool(8, 800),
       {400, 20},
       "0-3: [0] | 4: [1]"},
      {"widen lets it use idle ranks",
       "hdp-balance: {widen: true, search: none}",
       attending_pool(8, 800),
       {400, 20},
       "0-7: [0] | 0: [1]"},
      // D ranks take 80200 / D s of attention and (D - 1) hops of 80200 / 20 s: no less on six ranks than on five.
      {"as long as it then ends earlier",
       "hdp-balance: {widen: true, search: none}",
       with(attending_pool(8, 800), [](PlanningContext& context) { context.work.per_ring_step = 80200.0 / 20; }),
       {400, 20},
       "0-4: [0] | 5: [1]"},

      // 2 replicas of 2 ranks of 100 tokens. 120 + 60 fit, 50 does not; 50 + 150 fill a pack.
      {"a sequence that does not fit closes the pack, and packs go round the replicas",
       "megatron-dp-balanced: {cp: 2}",
       pool(4, 200),
       {120, 60, 50, 150},
       "0-1: [0, 1] | 2-3: [2, 3]"},
      {"one pack of three for two replicas: its last sequence becomes a pack",
       "megatron-dp-balanced: {cp: 4}",
       pool(8, 400),
       {10, 20, 30},
       "0-3: [0, 1] | 4-7: [2]"},
      {"and again until both have two",
       "megatron-dp-balanced: {cp: 4, micro_batches_divided_by: 2}",
       pool(8, 400),
       {10, 20, 30, 40},
       "0-3: [0] | 4-7: [3] | 0-3: [2] | 4-7: [1]"},
      {"a pack has no more sequences than the limit",
       "megatron-dp-balanced: {cp: 8, max_sequences: 2}",
       small_pool(),
       {1, 1, 1, 1, 1},
       "0-7: [0, 1] | 0-7: [2, 3] | 0-7: [4]"},
      {"each sequence is a micro-batch: 200 need two of 4 ranks, 90 need one",
       "megatron-hybrid-cp",
       small_pool(4),
       {90, 200, 90},
       "0-1: [1] | 2: [0] | 3: [2]"},
      {"the rank that has none joins the smallest group",
       "megatron-hybrid-cp",
       small_pool(4),
       {90, 200},
       "0-1: [1] | 2-3: [0]"},
      // The two of 90 open a group each; 80 joins the first: 14500 against 8100 for a rank. Taking it away is more
      // even, so that it runs on both ranks afterwards.
      {"what would leave loads uneven waits for the next slot",
       "megatron-hybrid-cp",
       small_pool(2),
       {90, 80, 90},
       "0: [0] | 1: [2] | 0-1: [1]"},
      // At most 60 x 100 x 1.05 = 6300 for a rank. 60 opens a group; 40 on the other rank leaves the largest load at
      // 3600, and so does 30 then beside 40: 1600 + 900.
      {"sequences are packed where the largest load stays the least",
       "megatron-dynamic-cp",
       small_pool(2),
       {60, 40, 30},
       "0: [0] | 1: [1, 2]"},
      // Two of 50 get a rank each. Each grows in its turn: the second one, from 1 rank to 2, fills the pool of 3 ...
      {"a pool that is no power of two runs together what leaves ranks idle",
       "megatron-dynamic-cp",
       small_pool(3),
       {50, 50},
       "0-1: [0] | 2: [1]"},
      {"... but of 150 on 2 ranks and 90 on one, the second would reach beyond it",
       "megatron-dynamic-cp",
       small_pool(4),
       {150, 90},
       "0-1: [0] | 2-3: [1]"},
      {"a group grows up to the whole pool: 140 waits for the next slot, as the original has it",
       "megatron-dynamic-cp",
       small_pool(3),
       {150, 140},
       "0-2: [0] | 0-2: [1]"},
      {"one slot of two groups becomes two slots of all ranks, the groups on the left last",
       "megatron-dynamic-cp: {micro_batches_divided_by: 2}",
       small_pool(4),
       {200, 180},
       "0-3: [1] | 0-3: [0]"},
      {"min_cp is the least degree", "megatron-dynamic-cp: {min_cp: 4}", small_pool(), {10, 10}, "0-3: [0] | 4-7: [1]"},

      {"a micro-batch of several sequences leaves at least a token free",
       "flexsp",
       small_pool(4),
       {200, 199},
       "0-3: [0, 1]"},
      {"and where it does not, it is two", "flexsp", small_pool(4), {200, 200}, "0-3: [0] | 0-3: [1]"},
      {"one sequence may fill it", "flexsp", small_pool(4), {400}, "0-3: [0]"},
      // 2 groups of 2 ranks, packs up to 180 tokens: 180, then 100 + 50 + 30; a pack of 90 leaves a group without one.
      {"groups without a pack get a sequence of the last pack that has two",
       "flexsp-homogeneous: {cp: 2}",
       pool(4, 200),
       {180, 100, 90, 50, 30},
       "0-1: [0] | 2-3: [3, 4] | 0-1: [2] | 2-3: [1]"},

      {"micro-batches have even work, not even tokens: 80 have 3240 pairs, ten of 10 have 550", "wlb",
       attending_pool(2, 100), repeated(10, 10, {80}), "0: [10] | 1: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"},
      {"where the micro-batch of least work is full, the one of fewest tokens is taken", "wlb", attending_pool(2, 100),
       repeated(11, 10, {80}), "0: [11, 10] | 1: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"},
      {"replicas get as many micro-batches as hold the batch, each on all ranks of the replica",
       "wlb: {cp: 2}",
       pool(4, 200),
       {200, 150, 150, 100},
       "0-1: [0] | 2-3: [1] | 0-1: [2] | 2-3: [3]"},
      {"without delay, what has no room beside 80 or 50 + 40 goes to the least work, here of tokens",
       "wlb: {defer: false}",
       attending_pool(2, 100),
       {80, 50, 40, 30},
       "0: [0, 3] | 1: [1, 2]"},

      {"short sequences stay whole, shortest first to the rank of least work, and need no group",
       "skrull: {cp: 2}",
       pool(2, 200),
       {60, 30, 50, 40},
       "0: [1, 2] | 1: [3, 0]"},
      {"what fits on no rank is shared by all, beside what they hold alone",
       "skrull: {cp: 2}",
       pool(2, 200),
       {150, 20, 25},
       "0-1: [0], local: [{rank: 0, spans: [1]}, {rank: 1, spans: [2]}]"},
      // Rank 0 holds 20 and 35, rank 1 holds 30. Half of 110 does not fit beside 55; once 20 is shared, 35 + 10 + 55
      // does.
      {"where a long sequence has no room, the shortest of the fullest rank is shared as well",
       "skrull: {cp: 2}",
       pool(2, 200),
       {20, 30, 35, 110},
       "0-1: [0, 3], local: [{rank: 0, spans: [2]}, {rank: 1, spans: [1]}]"},
      {"one after the other: rank 2 holds 90, the others 60, and for the other 90 all three are shared",
       "skrull: {cp: 3}",
       pool(3, 300),
       {60, 90, 60, 90},
       "0-2: [3, 2, 0, 1]"},
      {"210 tokens on two ranks of 100 are several micro-batches: 20, 40, and 30 beside the halves of 120",
       "skrull: {cp: 2}",
       pool(2, 200),
       {120, 20, 30, 40},
       "0: [1] | 1: [3] | 0-1: [0], local: [{rank: 0, spans: [2]}]"},
      // 90, 60 and 50 against 80, 70 and 40 (longest to the least load). Neither rank holds two of its longest, so that
      // there are three micro-batches with the shortest, the middle and the longest.
      {"replicas get even work, and every n-th of their sequences in each of n micro-batches",
       "skrull: {cp: 1}",
       pool(2, 100),
       {90, 80, 70, 60, 50, 40},
       "0: [4] | 0: [3] | 0: [0] | 1: [5] | 1: [2] | 1: [1]"},
      {"replicas hold twice the longest sequence where the pool has the ranks",
       "skrull",
       pool(8, 200),
       {200},
       "0-3: [0]"},
      {"which a pool of two has not", "skrull", pool(2, 200), {200}, "0-1: [0]"},
      {"and one of six has as a whole", "skrull", pool(6, 200), {200}, "0-5: [0]"},

      {"250 in chunks of 100, 100 and 50; 60 with 40, and 30; least work first",
       "chunkflow",
       pool(1, 250),
       {40, 250, 30, 60},
       "0: [2] | 0: [3, 0] | 0: [[1, 0, 100]], repeats_forward: true | 0: [[1, 100, 100]], continues: true, "
       "repeats_forward: true | 0: [[1, 200, 50]], continues: true"},
      {"the last two chunks keep their activations, and chunks shrink for them",
       "chunkflow: {kept_chunks: 2}",
       pool(1, 250),
       {200},
       "0: [[0, 0, 50]], repeats_forward: true | 0: [[0, 50, 50]], continues: true, repeats_forward: true | 0: [[0, "
       "100, 50]], continues: true | 0: [[0, 150, 50]], continues: true"},
      // 300 is 3 chunks, two of them forward twice: 400 of work. 100, 90, 80 and 70 are packs: 340.
      {"packs and chunked sequences go to the rank of least work, largest first",
       "chunkflow",
       with(pool(2, 300), [](PlanningContext& context) { context.work.forward_of_tokens = 0.5; }),
       {70, 300, 80, 90, 100},
       "0: [[1, 0, 100]], repeats_forward: true | 0: [[1, 100, 100]], continues: true, repeats_forward: true | 0: [[1, "
       "200, 100]], continues: true | 1: [0] | 1: [2] | 1: [3] | 1: [4]"},

      // Rows by length: 60 50 | 40 30 | 20 10; the first, the last backwards, and the middle one backwards. 60, 10 and
      // 30 fill a rank; 50, 20 and 40 do not, and so both have two micro-batches: 60 - 30 - 10 and 20 + 40 - 50.
      {"rows of the longest sequences go to the replicas there and back",
       "openrlhf",
       pool(2, 100),
       {10, 20, 30, 40, 50, 60},
       "0: [5] | 0: [0, 2] | 1: [1, 3] | 1: [4]"},

      // A token takes a second of compute, and one for each hop of a ring: what a single rank holds is best left there.
      {"every step has the strategy that ends first, its widest pipeline first",
       "hydraulis: {strategies: [[1, 1, 4, 2], [1, 1, 1, 1, 1, 1, 1, 1]]}",
       with(pool(8, 400), [](PlanningContext& context) { context.work.per_ring_token = 1; }),
       {400, 200, 100, 100},
       "0-3: [0] | 4-5: [1] | 6: [2] | 7: [3]"},
      {"and of equal sequences all pipelines alike",
       "hydraulis: {strategies: [[1, 1, 4, 2], [1, 1, 1, 1, 1, 1, 1, 1]]}",
       with(pool(8, 400), [](PlanningContext& context) { context.work.per_ring_token = 1; }), repeated(8, 100),
       "0: [0] | 1: [1] | 2: [2] | 3: [3] | 4: [4] | 5: [5] | 6: [6] | 7: [7]"},
      {"with pipelines that are all alike, every group has the same degree",
       "hydraulis: {pipelines: alike}",
       pool(8, 400),
       {400, 200, 100, 100},
       "0-3: [0] | 4-7: [1, 2, 3]"},
  };
  return all;
}

TEST_CASE("the plan of every policy, rule by rule, in a batch that shows it", "[plan][policies]") {
  for (const auto& [rule, entry, context, lengths, plan] : examples()) {
    CAPTURE(rule, entry);
    CHECK(micro_batches_text(plan_of(entry, context, lengths)) == plan);
  }
}

TEST_CASE("what a policy cannot plan it refuses, as the system that has it does", "[plan][policies]") {
  struct Refused {
    const char* entry;
    PlanningContext context;
    Lengths lengths;
    const char* reason;
  };
  for (const auto& [entry, context, lengths, reason] : std::initializer_list<Refused>{
           {"megatron-dp-balanced: {cp: 4, micro_batches_divided_by: 2}",
            pool(8, 400),
            {10, 20, 30},
            "makes 1 packs, which it cannot split into a multiple of 4"},
           {"megatron-hybrid-cp", small_pool(3), {250}, "gives a sequence of 250 tokens 4 ranks, the pool has 3"},
           // Two groups of 2 ranks each leave one of 5 idle, where the original fails.
           {"megatron-dynamic-cp: {min_cp: 2}",
            small_pool(5),
            {50, 50},
            "doubles a group of 2 ranks, but only 1 are free"},
           {"megatron-dynamic-cp: {micro_batches_divided_by: 2}",
            small_pool(4),
            {400},
            "makes 1 slots, which it cannot split into a multiple of 2"}}) {
    CAPTURE(entry);
    CHECK_THROWS_WITH(plan_of(entry, context, lengths), Catch::Contains(reason));
  }
}

}  // namespace
}  // namespace hdpsim
