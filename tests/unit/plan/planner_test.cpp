#include "sim/plan/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/check.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

PlanningContext with_host() {
  PlanningContext context = small_pool();
  context.work.offload_per_token = 0.001;
  context.host_tokens = 1000;
  return context;
}

using Problems = std::vector<std::string>;

}  // namespace

TEST_CASE("every policy can be named by a word alone", "[plan][options]") {
  REQUIRE_FALSE(policy_names().empty());
  for (const std::string& name : policy_names()) {
    CHECK(problems_of_entry(name).empty());
    CHECK(problems_of_entry(name + ":").empty());
    CHECK(problems_of_entry(name + ": {}").empty());
    CHECK(planner(name, small_pool())->plan(batch_of({10}), 7).policy == name);
    CHECK(planner(name, small_pool())->plan(batch_of({10}), 7).step == 7);
  }
}

TEST_CASE("all options are accepted", "[plan][options]") {
  CHECK(problems_of_entry("static: {cp: 8, order: descending}").empty());
  CHECK(problems_of_entry("hdp-naive: {order: data, offload: 0.5}", with_host()).empty());
  CHECK(problems_of_entry(
            "hdp-balance: {buckets: 4, delta: 0.02, offload: auto, placement: any, pack_groups: false, widen: true, "
            "search: own, margin: 0.02, spread: 0.1}",
            with_host())
            .empty());
}

TEST_CASE("what an entry cannot ask for is told at its place, with what to write instead", "[plan][options]") {
  struct Refused {
    std::string entry;
    PlanningContext context;
    Problems problems;
  };
  const std::string form =
      "1: a plan is the name of a policy, or one name with its options; write hdp-naive, or static: {cp: 8}";
  const PlanningContext long_context = with(small_pool(), [](PlanningContext& context) { context.context = 65537; });
  const std::vector<Refused> all = {
      {"hdp-balanced: {delta: 0.1}",
       small_pool(),
       {"1: there is no policy 'hdp-balanced'; did you mean 'hdp-balance'?"}},
      {"megatron",
       small_pool(),
       {fmt::format("1: there is no policy 'megatron'; known: {}", fmt::join(policy_names(), ", "))}},
      {"{static: {cp: 8}, hdp-naive: {}}", small_pool(), {form}},
      {"[static]", small_pool(), {form}},
      {"static: 8", small_pool(), {"9: static must be a map, found a value"}},
      {"hdp-balance: {bucket: 4, delta: 2, placement: nodefirst, widen: maybe}",
       small_pool(),
       {"15: hdp-balance has no key 'bucket'; did you mean 'buckets'?", "33: 'delta' is 2, it must be from 0.0001 to 1",
        "47: there is no placement 'nodefirst'; did you mean 'node-first'?",
        "65: \"maybe\" is neither true nor false; write true or false"}},
      {"static: {cp: 3}",
       small_pool(),
       {"14: 'cp' is 3, which does not divide the pool of 8 ranks; it can be 1, 2, 4, 8"}},
      {"static: {cp: 4}",
       small_pool(),
       {"14: 'cp' is 4: 4 ranks of 100 tokens do not hold a context of 800; use more ranks, or auto"}},
      {"static: {cp: many}",
       small_pool(),
       {"14: 'cp' is many, it must be auto or a number of ranks; write cp: auto, or cp: 8"}},
      {"static: {cp: [2]}",
       small_pool(),
       {"14: 'cp' is a list, it must be auto or a number of ranks; write cp: auto, or cp: 8"}},
      {"static: {cp: 16}", small_pool(), {"14: 'cp' is 16, it must be auto or from 1 to 8; it can be 1, 2, 4, 8"}},
      {"static: {packing: next_fit, order: descending}",
       small_pool(2),
       {"36: 'order' is descending, but next_fit has an order of packs of its own; remove 'order', or write packing: "
        "best_fit"}},
      {"static: {packing: trl, group: 64}",
       small_pool(2),
       {"31: 'group' is 64, but packing: trl has no such option; remove it, or pack as one of axolotl, ms_swift, "
        "xtuner"}},
      {"hdp-naive: {offload: 1.5}",
       with_host(),
       {"22: 'offload' is 1.5, it must be none, auto, token-wise or a ratio from 0 to 1; write none, auto, token-wise "
        "or a ratio such as 0.5"}},
      {"hdp-naive: {offload: nan}",
       with_host(),
       {"22: 'offload' is nan, it must be none, auto, token-wise or a ratio from 0 to 1; write none, auto, token-wise "
        "or a ratio such as 0.5"}},
      {"hdp-naive: {offload: 0.5}",
       small_pool(),
       {"22: 'offload' is 0.5, but the cluster has no host memory to copy to; give the nodes host memory, or write "
        "none"}},
      {"hdp-balance: {offload: auto}",
       with(with_host(), [](PlanningContext& context) { context.context = 4001; }),
       {"24: a context of 4001 does not fit: 8 ranks of 500 tokens hold 4000; use more ranks, a larger capacity or a "
        "shorter context"}},
      {"hdp-naive: {offload: 1.0}",
       with(with_host(), [](PlanningContext& context) { context.layers = 2; }),
       {"22: 'offload' is 1.0, but the activations of 2 layers stay on the device, and a pass has 2; write none, or "
        "give a stage more layers"}},
      {"hdp-balance: {offload: token-wise}",
       with_host(),
       {"24: 'offload' is token-wise, but layers with experts are not computed again token by token; write auto, or a "
        "ratio such as 0.5"}},
      {"hdp-balance: {offload: token-wise}",
       with(small_pool(), [](PlanningContext& context) { context.work.again_per_token = 0.1; }),
       {"24: 'offload' is token-wise, but the cluster has no host memory to copy to; give the nodes host memory, or "
        "write none"}},
      {"flexsp",
       small_pool(6),
       {"1: flexsp divides a power of two of ranks, the pool has 6; use a mesh with a power of two of replicas"}},
      {"megatron-dynamic-cp: {min_cp: 6}",
       small_pool(),
       {"31: 'min_cp' is 6, it must be a power of two up to the pool's 8 ranks; write 1, or a power of two"}},
      {"verl: {max_tokens: 101}",
       small_pool(1),
       {"20: 'max_tokens' is 101, a rank holds 100; use a larger capacity, or leave it out"}},
      {"openrlhf: {max_tokens: 101}",
       small_pool(1),
       {"24: 'max_tokens' is 101, a rank holds 100; use a larger capacity, or leave it out"}},
      {"chunkflow: {chunk_size: 101}",
       small_pool(),
       {"25: 'chunk_size' is 101, a rank holds 100 tokens; write at most the capacity"}},
      {"chunkflow: {chunk_size: 1}",
       long_context,
       {"25: a context of 65537 tokens in chunks of 1: more than 65536 chunks; write larger chunks, or keep fewer of "
        "them"}},
      {"chunkflow: {kept_chunks: 1000}",
       long_context,
       {"26: a context of 65537 tokens in chunks of 1: more than 65536 chunks; write larger chunks, or keep fewer of "
        "them"}},
      {"chunkflow",
       with(small_pool(), [](PlanningContext& context) { context.runs_chunks_in_order = false; }),
       {"1: the schedule of the pipeline does not run chunks of a sequence in order; choose schedule: 1f1b, or one "
        "stage"}},
      {"chunkflow",
       with(small_pool(), [](PlanningContext& context) { context.expert_ranks = 4; }),
       {"1: chunks of a sequence run in order on each rank alone, and expert groups have 4 ranks; choose ep so that "
        "the devices of one rank have all experts"}},
      {"distca: {servers: 3}",
       small_pool(4),
       {"19: 'servers' is 3, which does not divide the pool of 4 ranks; leave it out, or write a number that does"}},
      {"distca: {servers: 2}",
       with(small_pool(4), [](PlanningContext& context) { context.context = 300; }),
       {"19: a context of 300 tokens does not fit on 2 ranks with 100 tokens each; use more ranks, a larger capacity "
        "or a shorter context"}},
      {"distca",
       with(small_pool(4),
            [](PlanningContext& context) {
              context.not_served = "not all layers of it have attention and a dense MLP";
            }),
       {"1: ranks cannot attend for each other: not all layers of it have attention and a dense MLP; choose another "
        "plan for this model and mesh"}},
      {"hydraulis: {strategies: [[4, 4], [4, 2, 1], [8, 8]]}",
       small_pool(),
       {"34: the pipelines of a strategy have 7 ranks together, the pool has 8; state pipelines of 8 ranks, or leave "
        "'strategies' out",
        "45: the pipelines of a strategy have 16 ranks together, the pool has 8; state pipelines of 8 ranks, or leave "
        "'strategies' out"}},
      {"hydraulis: {strategies: [[4, 4], [4, 2, 2]]}",
       small_pool(),
       {"25: no strategy holds a context of 800: its widest pipeline has 4 ranks of 100 tokens; add a strategy with a "
        "wider pipeline, or leave 'strategies' out"}},
      {"hydraulis: {pipelines: alike, strategies: [[4, 2, 2]]}",
       small_pool(),
       {"43: no strategy has pipelines that are all alike; add a strategy with a wider pipeline, or leave 'strategies' "
        "out"}},
      {"hydraulis: {strategies: [[8], [0, 8]]}",
       small_pool(),
       {"32: the ranks of a pipeline is 0, it must be from 1 to 16Mi"}},
      {"hydraulis: {strategies: [8]}",
       small_pool(),
       {"25: 'strategies' is auto, or a list of lists of the ranks of pipelines; write strategies: [[8, 4, 4], [4, 4, "
        "4, 4]]"}},
      {"hydraulis: {strategies: {8: 1}}",
       small_pool(),
       {"25: 'strategies' is auto, or a list of lists of the ranks of pipelines; write strategies: [[8, 4, 4], [4, 4, "
        "4, 4]]"}},
      {"megatron-hybrid-cp: {min_cp: 2}",
       small_pool(),
       {"30: 'min_cp' is 2, but only the scheduler with packing has it; write packing: true, or remove it"}},
      {"megatron-dp-balanced: {release: main, max_sequences: 4}",
       small_pool(),
       {"54: 'max_sequences' is 4, which Megatron-LM's main does not have; remove it, or write release: dev"}},
      {"wlb: {outliers: [16, 64], defer: false}",
       small_pool(2),
       {"17: 'outliers' are held back, which defer: false does not do; remove one of the two"}},
      {"wlb: {outliers: [64, 16]}",
       small_pool(2),
       {"22: 'outliers' has 16, it must have rising numbers of tokens; write outliers: [16Ki, 64Ki]"}},
      {"wlb: {outliers: [0]}",
       small_pool(2),
       {"18: 'outliers' has 0, it must have rising numbers of tokens; write outliers: [16Ki, 64Ki]"}},
      {"wlb: {outliers: [[1]]}",
       small_pool(2),
       {"18: 'outliers' has a list, it must have rising numbers of tokens; write outliers: [16Ki, 64Ki]"}},
      {"wlb: {outliers: some}",
       small_pool(2),
       {"17: 'outliers' is some, it must be auto, none or a list of lengths; write outliers: auto, or outliers: [16Ki, "
        "64Ki]"}},
  };
  for (const auto& [entry, context, problems] : all) {
    CAPTURE(entry);
    CHECK(problems_by_column(entry, context) == problems);
  }
}

TEST_CASE("a context that the pool cannot hold is an error of every policy without chunks in order",
          "[plan][options]") {
  PlanningContext context = small_pool();
  context.context = 801;
  for (const std::string& policy : policy_names()) {
    CAPTURE(policy);
    const Problems problems = {
        "1: a context of 801 does not fit: 8 ranks of 100 tokens hold 800; use more ranks, a larger capacity or a "
        "shorter "
        "context"};
    // A rank runs a sequence of any length, chunk after chunk.
    CHECK(problems_by_column(policy, context) == (policy == "chunkflow" ? Problems{} : problems));
  }
}

TEST_CASE("offload can hold a context that the devices alone cannot", "[plan][options]") {
  PlanningContext context = with_host();
  context.context = 4000;  // up to 500 tokens a rank: 2 of 10 layers stay
  CHECK(problems_of_entry("hdp-balance: {offload: auto}", context).empty());
  CHECK(plan_of("hdp-balance: {offload: auto}", context, {4000}).micro_batches[0].offload == 1);
  CHECK(plan_of("hdp-naive: {offload: 1}", context, {4000}).micro_batches[0].group.size() == 8);
}

TEST_CASE("automatic offload does without host memory, and where all layers of a pass stay on the device",
          "[plan][options]") {
  CHECK(plan_of("hdp-naive: {offload: auto}", small_pool(), {800}) == plan_of("hdp-naive", small_pool(), {800}));
  PlanningContext context = with_host();
  context.layers = 2;
  CHECK(plan_of("hdp-naive: {offload: auto}", context, {800}) == plan_of("hdp-naive", context, {800}));
}

TEST_CASE("a stated ratio is that of every micro-batch: of long sequences, packs and uniform groups",
          "[plan][options]") {
  // Beyond the capacity of 100, as long as it, shorter ones and packs; the pool holds 10 contexts at once.
  const std::vector<std::int64_t> lengths = {300, 100, 99, 60, 60, 40, 10, 5, 1};
  for (const char* options : {"", ", groups: uniform", ", balance: pp", ", balance: none"}) {
    for (const char* policy : {"hdp-naive", "hdp-balance"}) {
      const std::string entry = fmt::format("{}: {{offload: 0.5{}}}", policy, options);
      if (std::string(policy) == "hdp-naive" && entry.find("balance:") != std::string::npos) continue;
      CAPTURE(entry);
      const Plan plan = plan_of(entry, with_host(), lengths);
      for (const MicroBatch& micro_batch : plan.micro_batches) CHECK(micro_batch.offload == 0.5);
    }
  }
}

TEST_CASE("a stated ratio is not lowered where the host is full: memory tells that it does not fit",
          "[plan][options]") {
  PlanningContext context = with_host();
  context.host_tokens = 1;
  CHECK(plan_of("hdp-naive: {offload: 1}", context, {60}).micro_batches[0].offload == 1);
}

TEST_CASE("uniform groups have the ranks that hold the context, with offload if they do not without",
          "[plan][options]") {
  PlanningContext context = with_host();
  const auto ranks = [&] { return plan_of("hdp-naive: {groups: uniform, offload: 1}", context, {80}); };
  context.context = 400;
  CHECK(ranks().micro_batches[0].group.size() == 4);
  context.context = 4000;  // 500 tokens a rank: two of ten layers stay
  CHECK(ranks().micro_batches[0].group.size() == 8);
}

TEST_CASE("a sequence beyond the context is a bug of the caller", "[plan][options]") {
  for (const std::string& policy : policy_names()) {
    CHECK_THROWS_AS(planner(policy, small_pool())->plan(batch_of({801}), 0), CheckFailure);
    CHECK_THROWS_AS(planner(policy, small_pool())->plan(batch_of({0}), 0), CheckFailure);
  }
}

TEST_CASE("a work model of zeros still makes a sound plan", "[plan]") {
  PlanningContext context = small_pool();
  context.work = {};
  for (const std::string& policy : policy_names())
    CHECK(!plan_of(policy, context, {800, 300, 5}).micro_batches.empty());
}

}  // namespace hdpsim
