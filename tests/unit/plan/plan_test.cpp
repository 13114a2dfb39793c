#include "sim/plan/plan.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/random.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

MicroBatch ring(std::size_t ranks, const std::vector<std::int64_t>& lengths) {
  MicroBatch micro_batch;
  for (std::size_t rank = 0; rank < ranks; ++rank) micro_batch.group.emplace_back(rank);
  for (const std::int64_t tokens : lengths) {
    micro_batch.spans.push_back({SequenceId(micro_batch.spans.size()), 0, tokens});
  }
  return micro_batch;
}

std::int64_t total(const std::vector<Part>& parts) {
  std::int64_t sum = 0;
  for (const Part& part : parts) sum += part.tokens;
  return sum;
}

// The parts of one span over all ranks, by their begin.
std::vector<Part> all_parts(const MicroBatch& micro_batch, std::size_t span) {
  std::vector<Part> parts;
  for (std::size_t rank = 0; rank < micro_batch.group.size(); ++rank) {
    const auto mine = parts_of(micro_batch, rank);
    parts.push_back(mine[2 * span]);
    parts.push_back(mine[2 * span + 1]);
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.tokens < b.tokens;
  });
  return parts;
}

}  // namespace

TEST_CASE("zigzag: rank i of N holds parts i and 2N-1-i", "[plan]") {
  const MicroBatch micro_batch = ring(2, {400});  // four parts of 100
  const SequenceId only(0);
  CHECK(parts_of(micro_batch, 0) == std::vector<Part>{{only, 0, 100}, {only, 300, 100}});
  CHECK(parts_of(micro_batch, 1) == std::vector<Part>{{only, 100, 100}, {only, 200, 100}});
}

TEST_CASE("a rank alone holds both halves of its spans", "[plan]") {
  const SequenceId only(0);
  CHECK(parts_of(ring(1, {7}), 0) == std::vector<Part>{{only, 0, 4}, {only, 4, 3}});
}

TEST_CASE("the remainder of a span is dealt one token a rank, and the next span goes on where it ended", "[plan]") {
  // 14 = 6 parts of 2 and 2 over: ranks 0 and 1 get one more. 13 = 6 x 2 + 1: the turn is rank 2's.
  const MicroBatch micro_batch = ring(3, {14, 13});
  CHECK(total(parts_of(micro_batch, 0)) == 5 + 4);
  CHECK(total(parts_of(micro_batch, 1)) == 5 + 4);
  CHECK(total(parts_of(micro_batch, 2)) == 4 + 5);
}

TEST_CASE("a remainder of more tokens than ranks goes round into the second parts", "[plan]") {
  // 11 = 6 parts of 1 and 5 over: the first parts get one each, then the second parts of ranks 0 and 1.
  const MicroBatch micro_batch = ring(3, {11});
  const SequenceId only(0);
  CHECK(parts_of(micro_batch, 0) == std::vector<Part>{{only, 0, 2}, {only, 9, 2}});
  CHECK(parts_of(micro_batch, 1) == std::vector<Part>{{only, 2, 2}, {only, 7, 2}});
  CHECK(parts_of(micro_batch, 2) == std::vector<Part>{{only, 4, 2}, {only, 6, 1}});
}

TEST_CASE("parts cover every span once, and ranks differ by at most one token", "[plan]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("replay: seed " << seed);
    RandomStream random(seed, "parts");
    std::vector<std::int64_t> lengths;
    for (std::uint64_t i = random.below(6) + 1; i > 0; --i)
      lengths.push_back(static_cast<std::int64_t>(random.below(60)) + 1);
    const MicroBatch micro_batch = ring(random.below(9) + 1, lengths);
    std::int64_t least = micro_batch.tokens();
    std::int64_t most = 0;
    for (std::size_t rank = 0; rank < micro_batch.group.size(); ++rank) {
      least = std::min(least, total(parts_of(micro_batch, rank)));
      most = std::max(most, total(parts_of(micro_batch, rank)));
    }
    CHECK(most - least <= 1);
    CHECK(most == micro_batch.tokens_per_rank());
    for (std::size_t span = 0; span < lengths.size(); ++span) {
      std::int64_t end = 0;
      for (const Part& part : all_parts(micro_batch, span)) {
        REQUIRE(part.begin == end);
        end += part.tokens;
      }
      CHECK(end == lengths[span]);
    }
  }
}

TEST_CASE("a span in the middle of a sequence keeps its place", "[plan]") {
  MicroBatch micro_batch = ring(2, {40});
  micro_batch.spans[0].begin = 1000;
  CHECK(parts_of(micro_batch, 1)[0].begin == 1010);
}

TEST_CASE("a rank outside the group has no parts to ask for", "[plan]") {
  CHECK_THROWS_AS(parts_of(ring(2, {4}), 2), CheckFailure);
}

TEST_CASE("tokens per rank round up", "[plan]") {
  CHECK(ring(3, {14, 13}).tokens() == 27);
  CHECK(ring(3, {14, 13}).tokens_per_rank() == 9);
  CHECK(ring(3, {14, 14}).tokens_per_rank() == 10);
}

TEST_CASE("the area of a micro-batch is that of the causal masks of its spans", "[plan]") {
  CHECK(ring(3, {4, 3}).area() == 4 * 5 / 2.0 + 3 * 4 / 2.0);
}

TEST_CASE("without masks a rank computes an even share of the squares of shared spans and those that it holds alone",
          "[plan]") {
  MicroBatch shared = ring(3, {6, 3});
  CHECK(shared.pairs_per_rank() == (6 * 6 + 3 * 3) / 3.0);
  shared.padding = 3;
  CHECK(shared.pairs_per_rank() == (6 * 6 + 3 * 3 + 3 * 3) / 3.0);
  shared.local = {{0, {{SequenceId(2), 0, 5}}}, {2, {{SequenceId(3), 0, 2}, {SequenceId(4), 0, 2}}}};
  CHECK(shared.pairs_per_rank() == (6 * 6 + 3 * 3 + 3 * 3) / 3.0 + 5 * 5);
  MicroBatch chunk = ring(1, {});
  chunk.spans = {{SequenceId(0), 8, 4}};
  CHECK(chunk.pairs_per_rank() == 4 * 4);
  chunk.continues = true;
  CHECK(chunk.pairs_per_rank() == 4 * (8 + 4));
}

TEST_CASE("offload leaves two layers and the rest of the ratio on the device", "[plan]") {
  CHECK(resident_share(0, 32) == 1);
  CHECK(resident_share(1, 32) == Approx(2.0 / 32));
  CHECK(resident_share(0.5, 32) == Approx((2 + 15.0) / 32));
  CHECK(resident_share(1, 2) == 1);
  CHECK(resident_share(1, 1) == 1);
}

}  // namespace hdpsim
