#include "sim/run/plan_ahead.h"

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sim/base/check.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

// A plan that says by its step which turn it is of.
Plan plan_of(const Turn& turn) {
  Plan plan;
  plan.ranks = 1;
  plan.schedule.resize(1);
  plan.step = 100 * turn.step + 10 * turn.run + static_cast<std::int64_t>(turn.plan);
  return plan;
}

// Nothing of the model is looked at, but a pipeline of one stage has at least one layer.
const LoweringOptions lowering = [] {
  LoweringOptions options;
  options.model.layers = 1;
  return options;
}();

TEST_CASE("plans take turns within a run, runs within a step", "[plan_ahead]") {
  const Turns turns{.plans = 3, .first_step = 5, .steps = 2, .runs = 2};
  REQUIRE(turns.count() == 12);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < turns.count(); ++i) order.push_back(plan_of(turns[i]).step);
  CHECK(order == std::vector<std::int64_t>{500, 501, 502, 510, 511, 512, 600, 601, 602, 610, 611, 612});
}

TEST_CASE("all ranks get the one plan of their turn", "[plan_ahead]") {
  const Turns turns{.plans = 2, .steps = 50};
  PlanAhead ahead(turns, plan_of, lowering);
  for (std::int64_t turn = 0; turn < turns.count(); ++turn) {
    const std::shared_ptr<const PlannedStep> first = ahead.step(turn);
    CHECK(first->plan().step == plan_of(turns[turn]).step);
    CHECK(&first->program().plan() == &first->plan());
    std::thread([&] { CHECK(ahead.step(turn) == first); }).join();
  }
}

TEST_CASE("the next turn is planned while the present one runs, the one after it is not", "[plan_ahead]") {
  std::vector<std::promise<void>> planned(3);
  std::atomic<int> calls = 0;
  const auto planner = [&](const Turn& turn) {
    planned[static_cast<std::size_t>(turn.step)].set_value();
    ++calls;
    return plan_of(turn);
  };
  PlanAhead ahead({.steps = 3}, planner, lowering);
  (void)ahead.step(0);
  planned[1].get_future().wait();  // without anybody asking for it
  (void)ahead.step(1);
  planned[2].get_future().wait();
  (void)ahead.step(2);
  CHECK(calls == 3);
}

TEST_CASE("what the planner throws reaches every rank that asks", "[plan_ahead]") {
  const auto planner = [](const Turn& turn) -> Plan {
    if (turn.step == 1) throw std::runtime_error("no plan");
    return plan_of(turn);
  };
  PlanAhead ahead({.steps = 2}, planner, lowering);
  CHECK_NOTHROW(ahead.step(0));
  CHECK_THROWS_WITH(ahead.step(1), "no plan");
  CHECK_THROWS_WITH(ahead.step(1), "no plan");
}

TEST_CASE("a turn that is over, or that there is not, cannot be asked for", "[plan_ahead]") {
  PlanAhead ahead({.steps = 4}, plan_of, lowering);
  for (std::int64_t turn = 0; turn < 4; ++turn) (void)ahead.step(turn);
  CHECK_THROWS_AS(ahead.step(0), CheckFailure);
  CHECK_THROWS_AS(ahead.step(4), CheckFailure);
}

TEST_CASE("a run that ends early does not plan on", "[plan_ahead]") {
  std::atomic<int> calls = 0;
  {
    PlanAhead ahead(
        {.steps = 1'000'000},
        [&](const Turn& turn) {
          ++calls;
          return plan_of(turn);
        },
        lowering);
    (void)ahead.step(0);
  }
  CHECK(calls <= 2);
}

}  // namespace
}  // namespace hdpsim
