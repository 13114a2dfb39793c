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
            "fallback: false, margin: 0.02, spread: 0.1}",
            with_host())
            .empty());
}

TEST_CASE("an unknown policy is told with the closest name", "[plan][options]") {
  CHECK(problems_of_entry("hdp-balanced: {delta: 0.1}") ==
        "study.yaml:1:1: error: there is no policy 'hdp-balanced'\n"
        "    1 | hdp-balanced: {delta: 0.1}\n"
        "        ^ did you mean 'hdp-balance'?\n");
  CHECK(problems_of_entry("megatron") ==
        "study.yaml:1:1: error: there is no policy 'megatron'\n" +
            fmt::format("    1 | megatron\n        ^ known: {}\n", fmt::join(policy_names(), ", ")));
}

TEST_CASE("an entry that is no plan is told how to write one", "[plan][options]") {
  const std::string help = "        ^ write hdp-naive, or static: {cp: 8}\n";
  CHECK(problems_of_entry("{static: {cp: 8}, hdp-naive: {}}") ==
        "study.yaml:1:1: error: a plan is the name of a policy, or one name with its options\n"
        "    1 | {static: {cp: 8}, hdp-naive: {}}\n" +
            help);
  CHECK(problems_of_entry("[static]") ==
        "study.yaml:1:1: error: a plan is the name of a policy, or one name with its options\n"
        "    1 | [static]\n" +
            help);
}

TEST_CASE("all wrong options of an entry are told at once", "[plan][options]") {
  CHECK(problems_of_entry("hdp-balance: {bucket: 4, delta: 2, placement: nodefirst, widen: maybe}") ==
        "study.yaml:1:15: error: hdp-balance has no key 'bucket'\n"
        "    1 | hdp-balance: {bucket: 4, delta: 2, placement: nodefirst, widen: maybe}\n"
        "                      ^ did you mean 'buckets'?\n"
        "study.yaml:1:33: error: 'delta' is 2, it must be from 0.0001 to 1\n"
        "    1 | hdp-balance: {bucket: 4, delta: 2, placement: nodefirst, widen: maybe}\n"
        "                                        ^\n"
        "study.yaml:1:47: error: there is no placement 'nodefirst'\n"
        "    1 | hdp-balance: {bucket: 4, delta: 2, placement: nodefirst, widen: maybe}\n"
        "                                                      ^ did you mean 'node-first'?\n"
        "study.yaml:1:65: error: \"maybe\" is neither true nor false\n"
        "    1 | hdp-balance: {bucket: 4, delta: 2, placement: nodefirst, widen: maybe}\n"
        "                                                                        ^ write true or false\n");
}

TEST_CASE("options must be a map", "[plan][options]") {
  CHECK(problems_of_entry("static: 8") ==
        "study.yaml:1:9: error: static must be a map, found a value\n"
        "    1 | static: 8\n"
        "                ^\n");
}

TEST_CASE("cp must divide the pool and hold the context", "[plan][options]") {
  CHECK(problems_of_entry("static: {cp: 3}") ==
        "study.yaml:1:14: error: 'cp' is 3, which does not divide the pool of 8 ranks\n"
        "    1 | static: {cp: 3}\n"
        "                     ^ it can be 1, 2, 4, 8\n");
  CHECK(problems_of_entry("static: {cp: 4}") ==
        "study.yaml:1:14: error: 'cp' is 4: 4 ranks of 100 tokens do not hold a context of 800\n"
        "    1 | static: {cp: 4}\n"
        "                     ^ use more ranks, or auto\n");
  CHECK(problems_of_entry("static: {cp: many}") ==
        "study.yaml:1:14: error: 'cp' is many, it must be auto or a number of ranks\n"
        "    1 | static: {cp: many}\n"
        "                     ^ write cp: auto, or cp: 8\n");
  CHECK(problems_of_entry("static: {cp: [2]}") ==
        "study.yaml:1:14: error: 'cp' is a list, it must be auto or a number of ranks\n"
        "    1 | static: {cp: [2]}\n"
        "                     ^ write cp: auto, or cp: 8\n");
  CHECK(problems_of_entry("static: {cp: 16}") ==
        "study.yaml:1:14: error: 'cp' is 16, it must be auto or from 1 to 8\n"
        "    1 | static: {cp: 16}\n"
        "                     ^ it can be 1, 2, 4, 8\n");
}

TEST_CASE("a context that the pool cannot hold is an error of every policy without chunks in order",
          "[plan][options]") {
  PlanningContext context = small_pool();
  context.context = 801;
  for (const std::string& policy : policy_names()) {
    if (policy == "chunkflow") {  // a rank runs a sequence of any length, chunk after chunk
      CHECK(problems_of_entry(policy, context).empty());
      continue;
    }
    CHECK(problems_of_entry(policy, context) ==
          "study.yaml:1:1: error: a context of 801 does not fit: 8 ranks of 100 tokens hold 800\n"
          "    1 | " +
              policy +
              "\n"
              "        ^ use more ranks, a larger capacity or a shorter context\n");
  }
}

TEST_CASE("offload can hold a context that the devices alone cannot", "[plan][options]") {
  PlanningContext context = with_host();
  context.context = 4000;  // up to 500 tokens a rank: 2 of 10 layers stay
  CHECK(problems_of_entry("hdp-balance: {offload: auto}", context).empty());
  CHECK(plan_of("hdp-balance: {offload: auto}", context, {4000}).micro_batches[0].offload == 1);
  CHECK(plan_of("hdp-naive: {offload: 1}", context, {4000}).micro_batches[0].group.size() == 8);
  context.context = 4001;
  CHECK(problems_of_entry("hdp-balance: {offload: auto}", context) ==
        "study.yaml:1:24: error: a context of 4001 does not fit: 8 ranks of 500 tokens hold 4000\n"
        "    1 | hdp-balance: {offload: auto}\n"
        "                               ^ use more ranks, a larger capacity or a shorter context\n");
}

TEST_CASE("offload is none, auto, token-wise or a ratio", "[plan][options]") {
  for (const char* wrong : {"1.5", "-0.1", "some", "nan"}) {
    CHECK(problems_of_entry(std::string("hdp-naive: {offload: ") + wrong + "}", with_host()) ==
          std::string("study.yaml:1:22: error: 'offload' is ") + wrong +
              ", it must be none, auto, token-wise or a ratio from 0 to 1\n"
              "    1 | hdp-naive: {offload: " +
              wrong +
              "}\n"
              "                             ^ write none, auto, token-wise or a ratio such as 0.5\n");
  }
}

TEST_CASE("offload needs host memory: a ratio is refused, auto does without", "[plan][options]") {
  CHECK(problems_of_entry("hdp-naive: {offload: 0.5}") ==
        "study.yaml:1:22: error: 'offload' is 0.5, but the cluster has no host memory to copy to\n"
        "    1 | hdp-naive: {offload: 0.5}\n"
        "                             ^ give the nodes host memory, or write none\n");
  CHECK(plan_of("hdp-naive: {offload: auto}", small_pool(), {800}) == plan_of("hdp-naive", small_pool(), {800}));
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

TEST_CASE("a ratio is refused where all layers of a pass stay on the device", "[plan][options]") {
  PlanningContext context = with_host();
  context.layers = 2;
  for (const char* rest : {"", ", groups: uniform"}) {
    const std::string entry = fmt::format("hdp-naive: {{offload: 1.0{}}}", rest);
    CHECK(problems_of_entry(entry, context) ==
          "study.yaml:1:22: error: 'offload' is 1.0, but the activations of 2 layers stay on the device, and a pass "
          "has 2\n    1 | " +
              entry + "\n                             ^ write none, or give a stage more layers\n");
  }
  CHECK(plan_of("hdp-naive: {offload: auto}", context, {800}) == plan_of("hdp-naive", context, {800}));
}

TEST_CASE("token-wise offload needs host memory and layers that can be computed again", "[plan][options]") {
  PlanningContext context = with_host();
  const std::string entry = "hdp-balance: {offload: token-wise}";
  const std::string line = "    1 | " + entry + "\n";
  CHECK(problems_of_entry(entry, context) ==
        "study.yaml:1:24: error: 'offload' is token-wise, but layers with experts are not computed again token by "
        "token\n" +
            line + "                               ^ write auto, or a ratio such as 0.5\n");
  context.work.again_per_token = 0.1;
  CHECK(problems_of_entry(entry, context).empty());
  context.host_tokens.reset();
  CHECK(problems_of_entry(entry, context) ==
        "study.yaml:1:24: error: 'offload' is token-wise, but the cluster has no host memory to copy to\n" + line +
            "                               ^ give the nodes host memory, or write none\n");
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
