#include "sim/report/lane.h"

#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

constexpr std::int64_t stages = 2;

Instant at(std::int64_t ps) {
  return Instant::at(Duration::picoseconds(ps));
}

// Rank 0 shares both micro-batches, rank 1 the first, rank 2 the second.
struct TwoGroups {
  Plan plan = test::plan_of(3, 2, {{{0, 1}, 100}, {{0, 2}, 100}});
  Pipeline pipeline{plan, 1, {}};
};

/// One rank whose two micro-batches go through two stages: F0 F1 B0 B1 and, on the last one, F0 B0 F1 B1.
struct TwoStages {
  Plan plan = test::plan_of(1, 2, {{{0}, 100}, {{0}, 100}});
  Pipeline pipeline{plan, stages, {}};
};

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
  const std::vector<Lane> lanes = lanes_of(TwoGroups().pipeline, timeline, {WorkerId(0), WorkerId(2)});
  REQUIRE(lanes.size() == 2);
  REQUIRE(lanes[0].pieces.size() == 2);
  CHECK(lanes[0].pieces[0].begin == at(10));
  CHECK(lanes[0].pieces[1].begin == at(50));
  CHECK(lanes[0].pieces[1].end == at(90));
  REQUIRE(lanes[1].pieces.size() == 1);
  CHECK(lanes[1].worker == WorkerId(2));
  CHECK(lanes[1].pieces[0].pass == PassId(1));
  CHECK(lanes[1].pieces[0].begin == at(40));
}

TEST_CASE("where instructions are known, a lane has the rank's own time and not the group's", "[lane]") {
  Timeline timeline;
  timeline.ranks.resize(3);
  timeline.micro_batches = {{at(10), at(50)}, {at(40), at(90)}};
  timeline.instructions = {record(0, 0, 15, 20), record(1, 0, 10, 50), record(0, 0, 18, 45), record(0, 1, 60, 80)};
  const std::vector<Lane> lanes = lanes_of(TwoGroups().pipeline, timeline, {WorkerId(0)});
  CHECK(lanes.at(0).pieces.at(0).begin == at(15));
  CHECK(lanes.at(0).pieces.at(0).end == at(45));
  CHECK(lanes.at(0).pieces.at(1).begin == at(60));
  CHECK(lanes.at(0).pieces.at(1).end == at(80));
}

TEST_CASE("a lane of a pipeline has the passes of its stage, each when it ran there", "[lane]") {
  const TwoStages two;
  Timeline timeline;
  timeline.ranks.resize(2);
  timeline.passes.resize(two.pipeline.passes());
  for (std::size_t p = 0; p < two.pipeline.passes(); ++p) {
    const auto time = static_cast<std::int64_t>(p) * 10;
    timeline.passes[p] = {at(time), at(time + 5)};
  }
  const std::vector<Lane> lanes = lanes_of(two.pipeline, timeline, workers_of(two.pipeline, {HdpRank(0)}));
  REQUIRE(lanes.size() == stages);
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const Lane& lane = lanes[static_cast<std::size_t>(stage)];
    CHECK(two.pipeline.stage_of(lane.worker) == stage);
    REQUIRE(lane.pieces.size() == 4);  // forward and backward of two micro-batches
    for (const Lane::Piece& piece : lane.pieces) CHECK(two.pipeline.pass(piece.pass).stage == stage);
    CHECK(lane.pieces[0].end == timeline.interval(lane.pieces[0].pass).end);
  }
}

TEST_CASE("instructions of a pass are those of its worker and of no other stage", "[lane]") {
  const TwoStages two;
  Timeline timeline;
  timeline.ranks.resize(2);
  timeline.passes.assign(two.pipeline.passes(), {at(0), at(1)});
  InstructionRecord on_last_stage = record(0, 1, 40, 70);
  on_last_stage.chunk = 1;
  on_last_stage.stage = 1;
  on_last_stage.kind = PassKind::backward;
  timeline.instructions = {on_last_stage};
  CHECK(pass_of(on_last_stage, two.pipeline) == two.pipeline.id_of(MicroBatchId(1), 1, PassKind::backward));
  const std::vector<Lane> lanes = lanes_of(two.pipeline, timeline, workers_of(two.pipeline, {HdpRank(0)}));
  CHECK(lanes[0].pieces.back().end == at(1));
  CHECK(lanes[1].pieces.back().begin == at(40));
  CHECK(lanes[1].pieces.back().end == at(70));
}

TEST_CASE("typical ranks go from the least busy one to the busiest, evenly", "[lane]") {
  const Plan plan = test::plan_of(5, 2, {});
  const Pipeline pipeline(plan, 1, {});
  Timeline timeline;
  timeline.step_time = 50_ps;
  for (const int busy : {50, 10, 40, 20, 30}) {
    Breakdown& rank = timeline.ranks.emplace_back();
    rank[Activity::linear] = Duration::picoseconds(busy);
    rank[Activity::group_wait] = timeline.step_time - rank[Activity::linear];
  }
  CHECK(typical_ranks(pipeline, timeline, 3) == std::vector{HdpRank(1), HdpRank(4), HdpRank(0)});
  CHECK(typical_ranks(pipeline, timeline, 1) == std::vector{HdpRank(4)});  // the median
  CHECK(typical_ranks(pipeline, timeline, 8).size() == 5);
}

TEST_CASE("a rank of a pipeline is as busy as its stages together", "[lane]") {
  const Plan plan = test::plan_of(2, 2, {});
  const Pipeline pipeline(plan, stages, {});
  Timeline timeline;
  timeline.step_time = 50_ps;
  for (const int busy : {50, 1, 30, 30}) {  // rank 0 stage 0, rank 0 stage 1, rank 1 ...
    Breakdown& worker = timeline.ranks.emplace_back();
    worker[Activity::linear] = Duration::picoseconds(busy);
    worker[Activity::bubble] = timeline.step_time - worker[Activity::linear];
  }
  CHECK(typical_ranks(pipeline, timeline, 2) == std::vector{HdpRank(0), HdpRank(1)});
}

}  // namespace
}  // namespace hdpsim
