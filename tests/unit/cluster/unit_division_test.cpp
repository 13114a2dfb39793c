#include "sim/cluster/unit_division.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "sim/base/random.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace hdpsim {
namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

/// The least cost over all divisions, by trying every one.
class EveryDivision {
 public:
  explicit EveryDivision(const DivisionTask& task) : task_(task), left_(task.free) {}

  double least_cost() {
    divide(task_.units, 0);
    return least_;
  }

 private:
  void divide(std::int64_t units, std::int64_t spread) {
    if (units > 0) return share(units, spread, 0, task_.nodes, 0);
    std::int64_t used = 0;
    for (std::size_t pod = 0; pod < left_.size(); ++pod) used += left_[pod] < task_.free[pod] ? 1 : 0;
    least_ =
        std::min(least_, task_.alpha * static_cast<double>(used) + (1 - task_.alpha) * static_cast<double>(spread));
  }

  // One unit needs so many nodes of the pods from `pod` on, and has nodes of `pods` ones.
  void share(std::int64_t units, std::int64_t spread, std::size_t pod, std::int64_t nodes, std::int64_t pods) {
    if (nodes == 0) return divide(units - 1, std::max(spread, pods));
    if (pod == left_.size()) return;
    for (std::int64_t here = 0; here <= std::min(nodes, left_[pod]); ++here) {
      left_[pod] -= here;
      share(units, spread, pod + 1, nodes - here, pods + (here > 0 ? 1 : 0));
      left_[pod] += here;
    }
  }

  const DivisionTask& task_;
  std::vector<std::int64_t> left_;
  double least_ = std::numeric_limits<double>::infinity();
};

void check_is_possible(const UnitDivision& division, const DivisionTask& task) {
  REQUIRE(division.units.size() == static_cast<std::size_t>(task.units));
  std::vector<std::int64_t> taken(task.free.size());
  std::int64_t spread = 0;
  for (const auto& unit : division.units) {
    std::int64_t nodes = 0;
    for (std::size_t i = 0; i < unit.size(); ++i) {
      CHECK((i == 0 || unit[i - 1].first < unit[i].first));
      CHECK(unit[i].second > 0);
      nodes += unit[i].second;
      taken.at(unit[i].first) += unit[i].second;
    }
    CHECK(nodes == task.nodes);
    spread = std::max(spread, static_cast<std::int64_t>(unit.size()));
  }
  for (std::size_t pod = 0; pod < taken.size(); ++pod) CHECK(taken[pod] <= task.free[pod]);
  CHECK(division.spread == spread);
  CHECK(division.pods == std::count_if(taken.begin(), taken.end(), [](std::int64_t nodes) { return nodes > 0; }));
}

TEST_CASE("no division of units costs less than the one that is found", "[unit_division]") {
  tests::for_seeds("unit_division", 3000, [](RandomStream& random) {
    DivisionTask task;
    task.units = 1 + static_cast<std::int64_t>(random.below(4));
    task.nodes = 1 + static_cast<std::int64_t>(random.below(5));
    task.free.resize(1 + random.below(5));
    for (std::int64_t& free : task.free) free = static_cast<std::int64_t>(random.below(6));
    task.alpha = static_cast<double>(random.below(11)) / 10;
    if (sum_of(task.free) < task.units * task.nodes) return;
    const UnitDivision division = divide_units(task);
    check_is_possible(division, task);
    CHECK(division.cost == Approx(EveryDivision(task).least_cost()));
    CHECK(division.least_cost == Approx(division.cost));
  });
}

TEST_CASE("the same where pods are many and smaller than units, so that units cannot connect all of them",
          "[unit_division]") {
  tests::for_seeds("small_pods", 300, [](RandomStream& random) {
    DivisionTask task{.units = 2, .nodes = 5 + static_cast<std::int64_t>(random.below(3)), .free = {}, .alpha = 0};
    while (sum_of(task.free) < task.units * task.nodes) {
      task.free.push_back(1 + static_cast<std::int64_t>(random.below(4)));
    }
    task.alpha = static_cast<double>(random.below(11)) / 10;
    const UnitDivision division = divide_units(task);
    check_is_possible(division, task);
    CHECK(division.cost == Approx(EveryDivision(task).least_cost()));
  });
}

TEST_CASE("with alpha 0 units stay whole where whole ones fit, and with alpha 1 pods are the fewest",
          "[unit_division]") {
  // 4 units of 4: whole ones need 1 + 1 + 1 + 1 pods, and the 16 nodes are in 7 + 7 + 7 of them.
  DivisionTask task{.units = 4, .nodes = 4, .free = {7, 7, 7, 7}, .alpha = 0};
  const UnitDivision whole = divide_units(task);
  CHECK(whole.spread == 1);
  CHECK(whole.pods == 4);
  CHECK(whole.cost == 1);
  task.alpha = 1;
  const UnitDivision packed = divide_units(task);
  CHECK(packed.pods == 3);
  CHECK(packed.spread == 2);
  CHECK(packed.cost == 3);
}

TEST_CASE("units that cannot be whole are in two pods, though each pod has whole ones, too", "[unit_division]") {
  // 14 + 13 + 13 = 40 nodes, 4 units of 10: one whole unit in each pod leaves 4 + 3 + 3, a unit in three.
  const DivisionTask task{.units = 4, .nodes = 10, .free = {14, 13, 13}, .alpha = 0};
  const UnitDivision division = divide_units(task);
  check_is_possible(division, task);
  CHECK(division.spread == 2);
}

TEST_CASE("a search that is given up says how far its answer may be from the best", "[unit_division]") {
  const DivisionTask task{.units = 2, .nodes = 4, .free = {3, 3, 1, 1}, .alpha = 0};
  const UnitDivision best = divide_units(task);  // twice 3 + 1
  CHECK(best.cost == 2);
  CHECK(best.least_cost == 2);
  const UnitDivision given_up = divide_units(task, 0);
  check_is_possible(given_up, task);
  CHECK(given_up.cost == 3);
  CHECK(given_up.least_cost == 2);
}

TEST_CASE("the 16,384 nodes of 131,072 GPUs are divided as well", "[unit_division]") {
  RandomStream random(1, "large");
  DivisionTask task{.units = 1024, .nodes = 16, .free = {}, .alpha = 0.3};
  while (sum_of(task.free) < task.units * task.nodes) task.free.push_back(static_cast<std::int64_t>(random.below(33)));
  const UnitDivision division = divide_units(task);
  check_is_possible(division, task);
  CHECK(division.least_cost == Approx(division.cost));
}

}  // namespace
}  // namespace hdpsim
