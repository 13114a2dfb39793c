// Ranks that attend for each other: the attention of a step, and what of their messages kernels hide.

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/engine/simulator.h"
#include "sim/plan/plan_check.h"
#include "sim/plan/served_cut.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

constexpr std::int64_t server_ranks = 4;
constexpr std::int64_t served_layers = 3;

// One pack of 8,000 tokens on four ranks of 2,000: in both halves a long document on three of them, and short ones.
Plan pack(std::vector<ServedQueries> moved) {
  const std::vector<std::int64_t> lengths = {3000, 500, 500, 3000, 250, 250, 500};
  Plan plan;
  plan.ranks = server_ranks;
  plan.capacity = 2000;
  plan.layers = served_layers;
  plan.sequence_tokens = lengths;
  MicroBatch micro_batch;
  micro_batch.cut = TokenCut::served;
  micro_batch.moved = std::move(moved);
  for (std::size_t rank = 0; rank < server_ranks; ++rank) micro_batch.group.emplace_back(rank);
  for (std::size_t i = 0; i < lengths.size(); ++i) micro_batch.spans.push_back({SequenceId(i), 0, lengths[i]});
  plan.micro_batches = {micro_batch};
  plan.schedule.assign(server_ranks, {MicroBatchId(0)});
  CHECK(check_plan(plan).empty());
  return plan;
}

// The last 600 queries of both long documents, which rank 2 has, go to rank 3.
const std::vector<ServedQueries> to_the_last = {{0, 2400, 600, 3}, {3, 2400, 600, 3}};

Timeline simulated(const Plan& plan, Duration per_gemm, Bandwidth rate, Grain grain = Grain::fluid) {
  test::HandMachine world(test::one_device_nodes(server_ranks, 1000_GBps), std::make_unique<test::HandCosts>(per_gemm));
  world.machine.sharing = test::each_shares_at(rate);
  return simulate(Program(plan, {test::one_head_model(served_layers), Mesh{.hdp = server_ranks}}), world.machine,
                  grain);
}

double picoseconds_of(Duration time) {
  return static_cast<double>(time.picoseconds());
}

constexpr Bandwidth endless = 1'000'000_GBps;

TEST_CASE("each half of a layer takes the attention of the rank that attends to most", "[served]") {
  for (const std::vector<ServedQueries>& moved : {std::vector<ServedQueries>{}, to_the_last}) {
    const Plan plan = pack(moved);
    double all = 0;
    double busiest = 0;
    for (const ServedHalf& half : served_halves(plan.micro_batches[0])) {
      double most = 0;
      for (const std::vector<CutPiece>& pieces : half.attended) {
        double pairs = 0;
        for (const CutPiece& piece : pieces) pairs += static_cast<double>(piece.pairs());
        all += pairs;
        most = std::max(most, pairs);
      }
      busiest += most;
    }
    CHECK(all == plan.micro_batches[0].area());
    const Timeline timeline = simulated(plan, Duration{}, endless);
    for (const Breakdown& rank : timeline.ranks) {
      CHECK(picoseconds_of(rank[Activity::attention]) == Approx(3 * served_layers * all / server_ranks).epsilon(2e-3));
      CHECK(picoseconds_of(rank[Activity::attention] + rank[Activity::group_wait]) ==
            Approx(3 * served_layers * busiest).epsilon(2e-3));
    }
  }
}

TEST_CASE("balanced servers are faster than ranks that attend to their own queries", "[served]") {
  CHECK(simulated(pack(to_the_last), 100_us, endless).step_time < simulated(pack({}), 100_us, endless).step_time);
}

TEST_CASE("messages of one half travel beside kernels of the other", "[served]") {
  // Attention of a half takes about 3 us and a product 10 us; the longest message takes less than one.
  const Plan plan = pack(to_the_last);
  CHECK(simulated(plan, 10_us, 1000_GBps).step_time == simulated(plan, 10_us, endless).step_time);
  CHECK(simulated(plan, 10_us, 10_GBps).step_time > simulated(plan, 10_us, endless).step_time);
}

TEST_CASE("messages that take longer than all kernels are what a step consists of", "[served]") {
  const Plan plan = pack(to_the_last);
  const Duration slow = simulated(plan, Duration{}, 1_GBps).step_time;
  Bytes sent;
  const MicroBatchProgram program =
      Program(plan, {test::one_head_model(served_layers), Mesh{.hdp = server_ranks}}).micro_batch(MicroBatchId(0));
  for (const Block& block : program.blocks) {
    for (const Instruction& instruction : block.body) {
      if (instruction.opcode == Opcode::share) sent += program.shares[instruction.work].bytes * block.iterations;
    }
  }
  CHECK(slow >= sent / 1_GBps);
  CHECK(slow <= (sent / 1_GBps).scaled(1.01));
}

}  // namespace
}  // namespace hdpsim
