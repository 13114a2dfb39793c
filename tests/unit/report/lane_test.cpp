#include "sim/report/lane.h"

#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

Instant at(std::int64_t ps) {
  return Instant::at(Duration::picoseconds(ps));
}

// Rank 0 shares both micro-batches, rank 1 the first, rank 2 the second.
Plan two_groups() {
  return test::plan_of(3, 2, {{{0, 1}, 100}, {{0, 2}, 100}});
}

InstructionRecord record(std::size_t rank, std::size_t micro_batch, std::int64_t begin, std::int64_t end) {
  InstructionRecord made;
  made.rank = HdpRank(rank);
  made.micro_batch = MicroBatchId(micro_batch);
  made.begin = at(begin);
  made.end = at(end);
  return made;
}

TEST_CASE("a lane has the micro-batches of its rank, each from where the one before it ended", "[lane]") {
  Timeline timeline;
  timeline.ranks.resize(3);
  timeline.micro_batches = {{at(10), at(50)}, {at(40), at(90)}};  // rank 2 began before rank 0 was free
  const std::vector<Lane> lanes = lanes_of(two_groups(), timeline, {HdpRank(0), HdpRank(2)});
  REQUIRE(lanes.size() == 2);
  REQUIRE(lanes[0].pieces.size() == 2);
  CHECK(lanes[0].pieces[0].begin == at(10));
  CHECK(lanes[0].pieces[1].begin == at(50));
  CHECK(lanes[0].pieces[1].end == at(90));
  REQUIRE(lanes[1].pieces.size() == 1);
  CHECK(lanes[1].rank == HdpRank(2));
  CHECK(lanes[1].pieces[0].micro_batch == MicroBatchId(1));
  CHECK(lanes[1].pieces[0].begin == at(40));
}

TEST_CASE("where instructions are known, a lane has the rank's own time and not the group's", "[lane]") {
  Timeline timeline;
  timeline.ranks.resize(3);
  timeline.micro_batches = {{at(10), at(50)}, {at(40), at(90)}};
  timeline.instructions = {record(0, 0, 15, 20), record(1, 0, 10, 50), record(0, 0, 18, 45), record(0, 1, 60, 80)};
  const std::vector<Lane> lanes = lanes_of(two_groups(), timeline, {HdpRank(0)});
  CHECK(lanes.at(0).pieces.at(0).begin == at(15));
  CHECK(lanes.at(0).pieces.at(0).end == at(45));
  CHECK(lanes.at(0).pieces.at(1).begin == at(60));
  CHECK(lanes.at(0).pieces.at(1).end == at(80));
}

TEST_CASE("typical ranks go from the least busy one to the busiest, evenly", "[lane]") {
  Timeline timeline;
  timeline.step_time = 50_ps;
  for (const int busy : {50, 10, 40, 20, 30}) {
    Breakdown& rank = timeline.ranks.emplace_back();
    rank[Activity::linear] = Duration::picoseconds(busy);
    rank[Activity::group_wait] = timeline.step_time - rank[Activity::linear];
  }
  CHECK(typical_ranks(timeline, 3) == std::vector{HdpRank(1), HdpRank(4), HdpRank(0)});
  CHECK(typical_ranks(timeline, 1) == std::vector{HdpRank(4)});  // the median
  CHECK(typical_ranks(timeline, 8).size() == 5);
}

}  // namespace
}  // namespace hdpsim
