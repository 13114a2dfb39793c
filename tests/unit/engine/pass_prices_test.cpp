#include "sim/engine/impl/pass_prices.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "sim/cost/coverage.h"
#include "sim/plan/expert_waves.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::HandCosts;
using test::HandMachine;
using test::one_device_nodes;
using test::one_head_model;
using test::plan_of;

// Micro-batches of these tokens on rank 0, and a ring of both ranks behind them.
Plan plan_with(const std::vector<std::int64_t>& tokens) {
  std::vector<std::pair<std::vector<std::size_t>, std::int64_t>> each;
  for (const std::int64_t count : tokens) each.push_back({{0}, count});
  each.push_back({{0, 1}, 8});
  return plan_of(2, 4, each);
}

// Checks that every pass gets the price of its own program.
void check_price(const PricedProgram& priced, const PricedProgram& own) {
  CHECK(priced.times == own.times);
  CHECK(priced.evidence == own.evidence);
  CHECK(priced.program.bytes == own.program.bytes);
  CHECK(priced.program.blocks.size() == own.program.blocks.size());
  CHECK(priced.traffic.sets.size() == own.traffic.sets.size());
  REQUIRE(priced.program.collectives.size() == own.program.collectives.size());
  for (std::size_t i = 0; i < own.program.collectives.size(); ++i) {
    CHECK(priced.program.collectives[i].bytes == own.program.collectives[i].bytes);
  }
}

// Checks that a pass without messages takes the sum of its instructions' times. Returns whether it is one.
bool check_serial(PassPrices& prices, PassId id, const PricedProgram& own) {
  const std::optional<SerialPass> serial = prices.serial(id);
  if (!serial) return false;
  CHECK(serial->evidence == own.evidence);
  CHECK(serial->traffic->sets.size() == own.traffic.sets.size());
  const Breakdown times = time_of_one_rank(own, 1);
  CHECK(std::all_of(all_activities.begin(), all_activities.end(),
                    [&](Activity activity) { return serial->times[activity] == times[activity]; }));
  return true;
}

// Counts the programs that are priced while all of them are held.
std::size_t priced_programs(const Program& program, const Machine& machine) {
  PassPrices prices(program, machine, nullptr);
  std::set<std::shared_ptr<const PricedProgram>> made;
  for (std::size_t p = 0; p < program.pipeline().passes(); ++p) {
    const auto priced = prices.of(PassId(p), ring_hops(program, PassId(p), machine));
    made.insert(priced);
    check_price(*priced, price(program, PassId(p), machine));
  }
  return made.size();
}

// Counts the products that it is asked for.
class CountingCosts final : public CostModel {
 public:
  [[nodiscard]] Estimate gemm(const Gemm& op) const override {
    ++products;
    return costs_.gemm(op);
  }
  [[nodiscard]] Estimate attention(const Attention& op) const override { return costs_.attention(op); }
  [[nodiscard]] Estimate memory_bound(const MemoryBound& op) const override { return costs_.memory_bound(op); }
  [[nodiscard]] std::int64_t kernels(const Attention& op) const override { return costs_.kernels(op); }
  mutable int products = 0;

 private:
  HandCosts costs_{1_us};
};

}  // namespace

TEST_CASE(
    "passes that differ in the lengths of their spans and in what they offload alone are priced once, but for "
    "their attention and their copies",
    "[engine]") {
  Plan plan = plan_with({5, 5, 3, 5});
  std::vector<Span>& split = plan.micro_batches[1].spans;
  split.push_back(split.front());
  split.front().tokens = 2;
  split.back().tokens = 3;
  plan.micro_batches[1].offload = 0.5;
  plan.micro_batches[3].offload = 0.25;
  plan.micro_batches[4].offload = 0.125;
  for (const std::int64_t stages : {std::int64_t{1}, std::int64_t{2}}) {
    HandMachine world(one_device_nodes(2 * stages, 1_GBps), std::make_unique<HandCosts>(1_us), stages);
    const auto context = std::make_shared<const LoweringContext>(
        LoweringOptions{.model = one_head_model(8), .mesh = {.hdp = 2, .pp = stages}});
    const Program program(plan, context);
    const CountingCosts costs;
    Machine machine = world.machine;
    machine.cost = &costs;
    machine.host = {3_us, 3_us, {}, 3_us};  // so that the host delays some layers
    world.machine.host = machine.host;
    PassForms forms;
    for (int step = 0; step < 3; ++step) {
      PassPrices prices(program, machine, &forms);
      for (std::size_t p = 0; p < program.pipeline().passes(); ++p) {
        const std::vector<Hop> hops = ring_hops(program, PassId(p), machine);
        const PricedProgram own = price(program, PassId(p), world.machine);
        check_price(*prices.of(PassId(p), hops), own);
        const bool is_serial = check_serial(prices, PassId(p), own);
        const MicroBatch& micro_batch = program.pipeline().micro_batch(PassId(p));
        CHECK(is_serial == (micro_batch.group.size() == 1 && !micro_batch.offloads()));
      }
      // A class is kept when it is asked for again; this asks for passes of one rank in two ways.
      CHECK((std::exchange(costs.products, 0) > 0) == (step < 2));
    }
  }
}

TEST_CASE("operations whose price is known count as asked for with every pass", "[engine]") {
  const Plan plan = plan_with({3, 3, 3, 5, 3, 3});
  HandMachine world(one_device_nodes(2, 1_GBps), std::make_unique<HandCosts>(1_us));
  const Program program(plan, LoweringOptions{.model = one_head_model(4), .mesh = {.hdp = 2}});
  Machine machine = world.machine;
  WatchedCostModel watched(*world.machine.cost);
  machine.cost = &watched;
  PassPrices prices(program, machine, nullptr);
  for (std::size_t p = 0; p < program.pipeline().passes(); ++p) {
    const bool is_serial = p % 2 == 0 && prices.serial(PassId(p));
    if (!is_serial) static_cast<void>(prices.of(PassId(p), ring_hops(program, PassId(p), machine)));
  }
  const Coverage together = watched.take_coverage();
  for (std::size_t p = 0; p < program.pipeline().passes(); ++p) static_cast<void>(price(program, PassId(p), machine));
  CHECK(together == watched.take_coverage());
}

TEST_CASE("passes with experts share one if their groups have as many tokens and the passes beside them are alike",
          "[engine][experts]") {
  constexpr std::int64_t stages = 4;
  Transformer model = one_head_model(2 * stages);
  model.moe = MixtureOfExperts{.experts = 2, .experts_per_token = 1, .expert_hidden = 128};
  // In one wave rank 1 has fewer tokens, and so has the expert group of both ranks.
  constexpr std::size_t odd_wave = 20;
  for (const bool equal : {true, false}) {
    std::vector<std::pair<std::vector<std::size_t>, std::int64_t>> groups;
    for (std::size_t wave = 0; wave < 40; ++wave) {
      groups.push_back({{0}, 1000});
      groups.push_back({{1}, equal || wave != odd_wave ? 1000 : 500});
    }
    const Plan plan = in_expert_waves(plan_of(2, model.layers, groups), 2, 0);
    LoweringOptions options{model, Mesh{.hdp = 2, .pp = stages, .ep = 2}};
    options.experts.ep = 2;
    options.pipeline.schedule = "dualpipe";
    const Program program(plan, options);
    HandMachine world(one_device_nodes(2 * stages, 1_GBps), std::make_unique<HandCosts>(1_us), 2);
    world.machine.experts = test::each_takes(10_us);
    const std::size_t places = program.pipeline().passes() / plan.micro_batches.size();
    const std::size_t programs = priced_programs(program, world.machine);
    // Two copies of the model, each with and without a pass beside it.
    if (equal) CHECK(programs <= 4 * places);
    if (!equal) CHECK(programs > 4 * places);
  }
}

TEST_CASE("micro-batches have the same work whatever their rank and sequences, and no other difference", "[plan]") {
  const Plan plan = plan_with({3, 3, 5});
  const MicroBatch& one = plan.micro_batches[0];
  MicroBatch other = plan.micro_batches[1];
  other.group = {HdpRank(1)};
  CHECK(have_same_work(one, other));
  CHECK_FALSE(have_same_work(one, plan.micro_batches[2]));
  CHECK_FALSE(have_same_work(plan.micro_batches[3], plan.micro_batches[3]));  // a ring
  for (const auto change : std::initializer_list<void (*)(MicroBatch&)>{
           [](MicroBatch& m) { m.offload = 0.5; }, [](MicroBatch& m) { m.token_wise = true; },
           [](MicroBatch& m) { m.padding = 1; }, [](MicroBatch& m) { m.continues = true; },
           [](MicroBatch& m) { m.spans[0].begin = 1; }}) {
    MicroBatch changed = other;
    change(changed);
    CHECK_FALSE(have_same_work(one, changed));
  }
}

}  // namespace hdpsim
