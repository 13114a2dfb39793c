#include "kernels/exec/impl/gather.h"

#include <atomic>

#include "kernels/transport/in_process.h"
#include "tests/support/catch.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

Duration ps(std::int64_t count) {
  return Duration::picoseconds(count);
}
Instant at(std::int64_t count) {
  return Instant::at(ps(count));
}

InstructionRecord record(std::size_t rank, Opcode opcode, std::uint32_t instruction, std::int64_t begin,
                         std::int64_t end) {
  return {.rank = HdpRank(rank),
          .micro_batch = MicroBatchId(0),
          .block = 2,
          .iteration = 0,
          .instruction = instruction,
          .opcode = opcode,
          .stream = opcode == Opcode::exchange ? Stream::comm : Stream::compute,
          .begin = at(begin),
          .end = at(end)};
}

// Two ranks of one ring. Rank 0 posts its exchange at 10 and computes until 30, rank 1 posts at 50: rank 0 waits from
// 30 to 50 for the peer and from 50 to 60 for the message, rank 1 from 55 to 58 for the message alone.
std::vector<RankLog> two_logs() {
  RankLog first;
  first.records = {record(0, Opcode::exchange, 0, 10, 60), record(0, Opcode::attention, 1, 10, 30)};
  first.waits = {{0, at(30), at(60)}};
  first.booked[Activity::attention] = ps(20);
  first.end = at(70);
  RankLog second;
  second.records = {record(1, Opcode::exchange, 0, 50, 58), record(1, Opcode::attention, 1, 51, 55)};
  second.waits = {{0, at(55), at(58)}};
  second.booked[Activity::attention] = ps(4);
  second.booked[Activity::optimizer] = ps(30);
  second.processor[Activity::optimizer] = ps(29);
  second.end = at(100);
  return {first, second};
}

Timeline two_ranks() {
  const Plan plan = hand_plan(2, 1, {8}, {{{0, 1}, {0}}});
  const LoweringOptions lowering{.model = tiny_model(1), .mesh = {.hdp = 2}};
  return assemble(Program(plan, lowering), two_logs());
}

TEST_CASE("a wait for an exchange is a wait for the peer until that has posted its side", "[exec][timeline]") {
  const Timeline timeline = two_ranks();
  CHECK(timeline.step_time == ps(100));
  REQUIRE(timeline.ranks.size() == 2);
  // After its end at 70 rank 0 has nothing to do; 20 of its time nobody has booked: 70 - 20 - 30.
  CHECK(timeline.ranks[0][Activity::attention] == ps(20));
  CHECK(timeline.ranks[0][Activity::group_wait] == ps(20 + 30));
  CHECK(timeline.ranks[0][Activity::cp_comm] == ps(10));
  CHECK(timeline.ranks[0][Activity::overhead] == ps(20));
  CHECK(timeline.ranks[1][Activity::group_wait] == ps(0));
  CHECK(timeline.ranks[1][Activity::cp_comm] == ps(3));
  CHECK(timeline.ranks[1][Activity::optimizer] == ps(30));
  CHECK(timeline.ranks[1][Activity::overhead] == ps(100 - 4 - 30 - 3));
  for (const Breakdown& rank : timeline.ranks) CHECK(rank.total() == timeline.step_time);
}

TEST_CASE("a wait in a collective is a wait for its last rank until that is there", "[exec][timeline][sharing]") {
  // Four ranks that trade heads in pairs. The first of each pair comes 20 and 5 before the second, and all see the end
  // 10 after that; the other pair does not matter.
  const std::int64_t came[] = {10, 30, 45, 40};
  const std::int64_t end[] = {40, 40, 55, 55};
  std::vector<RankLog> logs(4);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    logs[rank].records = {record(rank, Opcode::share, 0, came[rank] - 3, end[rank] + 1)};
    logs[rank].waits = {{0, at(came[rank]), at(end[rank])}};
    logs[rank].end = at(60);
  }
  const Plan plan = hand_plan(4, 1, {16}, {{{0, 1, 2, 3}, {0}}});
  LoweringOptions lowering{.model = four_heads(1), .mesh = {.hdp = 4}};
  lowering.recipe.key_exchange = KeyExchange::all_to_all;
  lowering.recipe.a2a_ranks = 2;
  const Timeline timeline = assemble(Program(plan, lowering), logs);
  const std::int64_t for_peers[] = {20, 0, 0, 5};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    INFO("rank " << rank);
    CHECK(timeline.ranks[rank][Activity::group_wait] == ps(for_peers[rank]));
    CHECK(timeline.ranks[rank][Activity::cp_comm] == ps(10));
  }
}

TEST_CASE("a micro-batch lasts from its first instruction to its last, on any rank", "[exec][timeline]") {
  const Timeline timeline = two_ranks();
  REQUIRE(timeline.micro_batches.size() == 1);
  CHECK(timeline.micro_batches[0].begin == at(10));
  CHECK(timeline.micro_batches[0].end == at(60));
  CHECK(timeline.instructions.size() == 4);
}

TEST_CASE("rank 0 gets all logs as they were, the others nothing", "[exec][timeline]") {
  const std::vector<RankLog> logs = two_logs();
  std::vector<RankLog> gathered;
  std::atomic<int> empty = 0;
  run_ranks(2, [&](Transport& transport) {
    std::vector<RankLog> got = gather_logs(transport, logs[static_cast<std::size_t>(transport.rank())]);
    if (transport.rank() == 1 && got.empty()) ++empty;
    if (transport.rank() == 0) gathered = std::move(got);
  });
  CHECK(empty == 1);
  REQUIRE(gathered.size() == 2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(gathered[rank].records == logs[rank].records);
    CHECK(gathered[rank].waits.size() == 1);
    CHECK(gathered[rank].waits[0].end == logs[rank].waits[0].end);
    CHECK(gathered[rank].booked[Activity::attention] == logs[rank].booked[Activity::attention]);
    CHECK(gathered[rank].processor[Activity::optimizer] == logs[rank].processor[Activity::optimizer]);
    CHECK(gathered[rank].end == logs[rank].end);
  }
}

}  // namespace
}  // namespace hdpsim::kernels::exec
