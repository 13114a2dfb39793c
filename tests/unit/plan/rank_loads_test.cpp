#include "sim/plan/impl/rank_loads.h"

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "sim/plan/impl/balance.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

using Ranks = std::vector<std::int64_t>;

// Takes ranks and gives each of them so much more work.
Ranks give(RankLoads& loads, std::int64_t count, double seconds, RankChoice choice = RankChoice::least_wait) {
  Ranks taken = loads.take(count, choice);
  for (const std::int64_t rank : taken) loads.put(rank, loads.load(rank) + seconds);
  return taken;
}

Ring a_ring(std::size_t sequence, std::int64_t degree, double seconds) {
  return {sequence, {degree, 0}, seconds};
}

}  // namespace

TEST_CASE("loads: whole nodes are taken before parts of nodes", "[plan][loads]") {
  RankLoads loads(12, 4, 1);
  CHECK(give(loads, 2, 10) == Ranks{0, 1});
  CHECK(give(loads, 4, 10) == Ranks{4, 5, 6, 7});  // not 2, 3, 4, 5
  CHECK(give(loads, 2, 10) == Ranks{2, 3});        // the rest of a node before another node is opened
  CHECK(give(loads, 4, 10) == Ranks{8, 9, 10, 11});
}

TEST_CASE("loads: a remainder goes to the node that it fills best", "[plan][loads]") {
  RankLoads loads(12, 4, 1);
  give(loads, 1, 10);                                       // node 0 has 3 left
  CHECK(give(loads, 7, 10) == Ranks{1, 2, 3, 4, 5, 6, 7});  // one whole node and the three
}

TEST_CASE("loads: without nodes the lowest ranks are taken", "[plan][loads]") {
  RankLoads loads(12, 1, 1);
  give(loads, 2, 10);
  CHECK(give(loads, 4, 10) == Ranks{2, 3, 4, 5});
}

TEST_CASE("loads: less loaded ranks come first, and differences below delta do not count", "[plan][loads]") {
  RankLoads loads(4, 1, 1);
  give(loads, 1, 0.9);                      // rank 0 stays on the level of the others
  CHECK(give(loads, 2, 5) == Ranks{0, 1});  // 5.9 and 5
  CHECK(give(loads, 2, 7) == Ranks{2, 3});
  CHECK(give(loads, 2, 1) == Ranks{0, 1});
  CHECK(give(loads, 1, 9) == Ranks{0});  // 6.9 and 6 are one level as well
  CHECK(give(loads, 1, 9) == Ranks{1});
}

TEST_CASE("loads: of the ranks free in time those are taken that would wait least", "[plan][loads]") {
  RankLoads loads(6, 1, 1);
  CHECK(give(loads, 4, 50) == Ranks{0, 1, 2, 3});
  // Three ranks are not free together before 50: ranks 0, 1, 2, and the idle ones stay idle for shorter work.
  CHECK(give(loads, 3, 20) == Ranks{0, 1, 2});
  CHECK(give(loads, 2, 10) == Ranks{4, 5});
}

TEST_CASE("loads: the least loaded can be drawn in instead, and wait", "[plan][loads]") {
  RankLoads loads(6, 1, 1);
  give(loads, 4, 50);
  CHECK(give(loads, 3, 20, RankChoice::least_loaded) == Ranks{0, 4, 5});
}

TEST_CASE("loads: targets are the ranks below the most loaded level", "[plan][loads]") {
  RankLoads loads(6, 1, 1);
  CHECK(loads.target_count() == 0);  // all are equal
  give(loads, 4, 50);
  CHECK(loads.target_count() == 2);
}

TEST_CASE("loads: offers count the ranks that are free by a time", "[plan][loads]") {
  RankLoads loads(6, 1, 1);
  REQUIRE(loads.offers().size() == 1);
  CHECK(loads.offers()[0].ranks == 6);
  CHECK(loads.offers()[0].start == 0);
  give(loads, 4, 50.5);
  REQUIRE(loads.offers().size() == 2);
  CHECK(loads.offers()[0].ranks == 2);
  CHECK(loads.offers()[1].ranks == 6);
  CHECK(loads.offers()[1].start == 50.5);
}

TEST_CASE("loads: ranks put back together are those put back one by one", "[plan][loads]") {
  RankLoads together(24, 4, 1);
  RankLoads one_by_one(24, 4, 1);
  RandomStream random(1, "ranks put back");
  for (int i = 0; i < 200; ++i) {
    const auto choice = random.below(2) == 0 ? RankChoice::least_wait : RankChoice::least_loaded;
    const auto count = 1 + static_cast<std::int64_t>(random.below(24));
    const auto load = static_cast<double>(i + static_cast<int>(random.below(8)));
    const Ranks ranks = together.take(count, choice);
    REQUIRE(one_by_one.take(count, choice) == ranks);
    together.put(ranks, load);
    for (const std::int64_t rank : ranks) one_by_one.put(rank, load);
    CHECK(together.loads() == one_by_one.loads());
    CHECK(together.target_count() == one_by_one.target_count());
  }
}

TEST_CASE("loads: more ranks than there are is a bug", "[plan][loads]") {
  RankLoads loads(4, 1, 1);
  CHECK_THROWS_AS(loads.take(5, RankChoice::least_wait), CheckFailure);
}

TEST_CASE("buckets: each draw comes from the first bucket that has a sequence, longest first", "[plan][buckets]") {
  const std::vector<Ring> rings{a_ring(7, 4, 4), a_ring(5, 3, 3), a_ring(6, 2, 2)};
  Buckets buckets(rings, 3);
  CHECK(buckets.draw(8).sequence == 7);
  CHECK(buckets.draw(8).sequence == 5);
  CHECK(buckets.draw(8).sequence == 6);
  CHECK(buckets.empty());
}

TEST_CASE("buckets: within a bucket the longest whose ring the targets can hold", "[plan][buckets]") {
  const std::vector<Ring> rings{a_ring(0, 4, 4), a_ring(1, 3, 3), a_ring(2, 2, 2)};
  Buckets one(rings, 1);
  CHECK(one.draw(3).sequence == 1);
  CHECK(one.draw(1).sequence == 0);  // none fits: the longest
  CHECK(one.draw(2).sequence == 2);
  Buckets many(rings, 100);  // every sequence is a bucket
  CHECK(many.draw(3).sequence == 0);
}

TEST_CASE("buckets hold equal work: D times seconds", "[plan][buckets]") {
  // 36 of work in two buckets of 18: {18} and {8, 8, 2}. With one target only the longest of a bucket can be drawn.
  const std::vector<Ring> rings{a_ring(0, 3, 6), a_ring(1, 2, 4), a_ring(2, 2, 4), a_ring(3, 1, 2)};
  Buckets buckets(rings, 2);
  CHECK(buckets.draw(1).sequence == 0);  // alone in its bucket
  CHECK(buckets.draw(1).sequence == 3);
}

}  // namespace hdpsim
