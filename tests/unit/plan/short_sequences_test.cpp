#include "sim/plan/impl/short_sequences.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

/// A batch with its sequences longest first, and ranks that have work already.
struct Dealing {
  PlanningContext context;
  Batch batch;
  SizedList sequences;
  std::vector<double> loads;
  std::vector<double> speeds;
};

Dealing drawn(std::uint64_t seed) {
  RandomStream random(seed, "short sequences");
  Dealing drawn;
  drawn.context.capacity = 64 + static_cast<std::int64_t>(random.below(1000));
  drawn.context.work = {.per_area = 1e-6, .per_token = 1e-3, .per_micro_batch = random.below(3) == 0 ? 0 : 0.05};
  if (random.below(3) == 0) drawn.context.work.least = 0.4;
  // Often equal lengths and equal loads, so that ties are decided.
  const std::uint64_t longest = 1 + random.below(static_cast<std::uint64_t>(drawn.context.capacity) - 1);
  const std::uint64_t lengths = 1 + random.below(longest);
  for (std::uint64_t i = 0, count = random.below(400); i < count; ++i) {
    const std::uint64_t tokens = longest - random.below(lengths);
    drawn.batch.sequences.push_back({static_cast<std::int64_t>(tokens), static_cast<std::int64_t>(i)});
  }
  drawn.sequences = sized_longest_first(drawn.batch);
  const std::uint64_t ranks = 1 + random.below(20);
  const bool is_busy = random.below(2) == 0;
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    drawn.loads.push_back(is_busy ? static_cast<double>(random.below(8)) : 0);
    if (seed % 4 == 0) drawn.speeds.push_back(1 - 0.25 * static_cast<double>(random.below(3)));
  }
  return drawn;
}

/// The same dealing, looked up among all ranks and all of a rank's micro-batches.
struct Plain {
  struct Pack {
    std::size_t rank;
    std::int64_t room;
    double seconds = 0;
    std::size_t filled = 0;  ///< The number of sequences that were dealt when it got its last one.
  };
  std::vector<Pack> packs;
  std::vector<std::uint32_t> pack_of;
  std::vector<double> loads;

  explicit Plain(const Dealing& dealing) : loads(dealing.loads) {
    for (const SizedSequence& each : dealing.sequences) deal(dealing, each.tokens);
  }

  void deal(const Dealing& dealing, std::int64_t tokens) {
    const WorkModel& work = dealing.context.work;
    const auto rank = static_cast<std::size_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
    Pack* fullest = nullptr;
    for (Pack& pack : packs) {
      if (pack.rank != rank || pack.room < tokens) continue;
      const bool is_fuller = fullest == nullptr || pack.room < fullest->room;
      if (is_fuller || (pack.room == fullest->room && pack.filled > fullest->filled)) fullest = &pack;
    }
    double seconds = work.compute_seconds(causal_pairs(tokens), tokens);
    const double below_least = fullest != nullptr ? std::max(0.0, work.least - fullest->seconds) : 0;
    if (fullest == nullptr) {
      fullest = &packs.emplace_back(Pack{.rank = rank, .room = dealing.context.capacity});
      seconds += work.per_micro_batch;
    }
    pack_of.push_back(static_cast<std::uint32_t>(fullest - packs.data()));
    fullest->filled = pack_of.size();
    fullest->room -= tokens;
    fullest->seconds += seconds;
    seconds += std::max(0.0, work.least - fullest->seconds) - below_least;
    loads[rank] += dealing.speeds.empty() ? seconds : seconds / dealing.speeds[rank];
  }
};

TEST_CASE("every short sequence goes to the rank that is done first, into its fullest micro-batch with room",
          "[planner]") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const Dealing dealing = drawn(seed);
    const Plain plain(dealing);
    std::vector<double> loads = dealing.loads;
    const DealtSequences dealt =
        deal_short_sequences(ShortSequences(dealing.sequences), {dealing.context, {}}, loads, dealing.speeds);
    CHECK(loads == plain.loads);
    REQUIRE(dealt.ranks.size() == plain.packs.size());
    for (std::size_t pack = 0; pack < dealt.ranks.size(); ++pack) CHECK(dealt.ranks[pack] == plain.packs[pack].rank);
    CHECK(dealt.packs == plain.pack_of);
  }
}

TEST_CASE("the longest sequence within a limit is taken, of equal ones the last of the data", "[planner]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const Dealing dealing = drawn(seed);
    ShortSequences left(dealing.sequences);
    std::set<std::pair<std::uint32_t, std::uint32_t>> plain;  // (tokens, sequence)
    for (const SizedSequence& each : dealing.sequences) plain.emplace(each.tokens, each.sequence);
    RandomStream random(seed, "limits");
    for (std::size_t i = 0; i < dealing.sequences.size(); ++i) {
      const auto most = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(dealing.context.capacity)));
      const bool is_wanted = random.below(4) > 0;
      const std::optional<SizedSequence> taken =
          left.take_longest_within(most, [&](std::int64_t) { return is_wanted; });
      const auto beyond = plain.lower_bound({static_cast<std::uint32_t>(most) + 1, 0});
      REQUIRE(taken.has_value() == (is_wanted && beyond != plain.begin()));
      if (!taken) continue;
      CHECK(std::pair(taken->tokens, taken->sequence) == *std::prev(beyond));
      plain.erase(std::prev(beyond));
    }
    CHECK(left.count() == plain.size());
    SizedList rest;
    left.for_each_length([&](std::int64_t, auto same) { rest.insert(rest.end(), same.rbegin(), same.rend()); });
    SizedList expected;
    for (auto each = plain.rbegin(); each != plain.rend(); ++each) expected.push_back({each->second, each->first});
    CHECK(rest == expected);
  }
}

}  // namespace
}  // namespace hdpsim
