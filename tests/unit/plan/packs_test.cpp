#include "sim/plan/impl/packs.h"

#include <utility>

#include "sim/base/check.h"
#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

std::vector<SequenceList> sequences_of(const std::vector<SequencePack>& packs) {
  std::vector<SequenceList> lists;
  for (const SequencePack& pack : packs) lists.push_back(pack.sequences);
  return lists;
}

std::vector<SequenceList> pack(const std::vector<std::int64_t>& lengths, std::int64_t room) {
  const Batch batch = batch_of(lengths);
  return sequences_of(best_fit(batch, longest_first(batch), room));
}

std::vector<SequenceList> in_turn(const std::vector<std::int64_t>& lengths, std::optional<std::int64_t> most = {}) {
  const Batch batch = batch_of(lengths);
  return sequences_of(next_fit(batch, in_data_order(batch), 100, most));
}

}  // namespace

TEST_CASE("longest first keeps the data order among equals", "[plan][packing]") {
  CHECK(longest_first(batch_of({5, 9, 5, 7})) == SequenceList{1, 3, 0, 2});
}

TEST_CASE("best fit puts a sequence where the least room is left", "[plan][packing]") {
  // 60 and 50 open packs with 40 and 50 left; 40 fits both and fills the first; 45 then goes to the second.
  CHECK(pack({60, 50, 45, 40}, 100) == std::vector<SequenceList>{{0, 3}, {1, 2}});
}

TEST_CASE("best-fit decreasing fills 6 + 4 and 5 + 3 + 2 where data order would need a third pack", "[plan][packing]") {
  CHECK(pack({2, 3, 4, 5, 6}, 10) == std::vector<SequenceList>{{4, 2}, {3, 1, 0}});
}

TEST_CASE("a sequence that fills a pack stays alone", "[plan][packing]") {
  CHECK(pack({100, 1, 100}, 100) == std::vector<SequenceList>{{0}, {2}, {1}});
}

TEST_CASE("a sequence longer than a pack has a pack of its own that takes no other", "[plan][packing]") {
  CHECK(pack({250, 10}, 100) == std::vector<SequenceList>{{0}, {1}});
}

TEST_CASE("in data order a pack has the place of its longest sequence", "[plan][packing]") {
  // Longest first, 4 takes 0, 1 stays alone, and 3 takes 2.
  const PackList packs = best_fit_list(sized_longest_first(batch_of({10, 95, 20, 80, 90})), 100, DealOrder::data);
  std::vector<SequenceList> lists;
  for (std::size_t pack = 0; pack < packs.size(); ++pack) {
    SequenceList& list = lists.emplace_back();
    for (const SizedSequence& each : packs[pack]) list.push_back(each.sequence);
  }
  CHECK(lists == std::vector<SequenceList>{{1}, {3, 2}, {4, 0}});
}

TEST_CASE("next fit closes a pack for the sequence that does not fit, though later ones would", "[plan][packing]") {
  CHECK(in_turn({60, 50, 40, 10}) == std::vector<SequenceList>{{0}, {1, 2, 3}});
  CHECK(in_turn({60, 50, 10, 10}, 2) == std::vector<SequenceList>{{0}, {1, 2}, {3}});
  CHECK(in_turn({250, 10}) == std::vector<SequenceList>{{0}, {1}});
  CHECK(in_turn({}).empty());
}

TEST_CASE("first fit takes the first bin with room, behind what it holds", "[plan][packing]") {
  FirstFit bins(4, 8);
  const auto at = [&](std::int64_t size) {
    const FirstFit::Place place = bins.place(size);
    return std::pair(place.bin, place.begin);
  };
  CHECK(at(5) == std::pair(std::size_t{0}, std::int64_t{0}));
  CHECK(at(4) == std::pair(std::size_t{1}, std::int64_t{0}));
  CHECK(at(3) == std::pair(std::size_t{0}, std::int64_t{5}));
  CHECK(at(8) == std::pair(std::size_t{2}, std::int64_t{0}));
  CHECK_THROWS_AS(bins.place(9), CheckFailure);
}

TEST_CASE("first fit gives a sequence longer than a pack one of its own, and fills those before it",
          "[plan][packing]") {
  const Batch batch = batch_of({60, 250, 50, 40, 50});
  CHECK(sequences_of(first_fit(batch, in_data_order(batch), 100)) == std::vector<SequenceList>{{0, 3}, {1}, {2, 4}});
  CHECK(sequences_of(first_fit(batch, in_data_order(batch), 100, 1)).size() == 5);
}

TEST_CASE("a pack gives all its sequences but one away, from either end, before the next does", "[plan][packing]") {
  const Batch batch = batch_of({10, 20, 30, 40, 50, 60});
  const std::vector<SequencePack> made = {{{0, 1}, 30, 0}, {{2}, 30, 0}, {{3, 4, 5}, 150, 0}};
  std::vector<SequencePack> packs = made;
  split_off(packs, most_sequences_first(packs), 5, batch);
  CHECK(packs == std::vector<SequencePack>{made[0], made[1], {{3}, 40, 0}, {{5}, 60, 0}, {{4}, 50, 0}});
  packs = made;
  split_off(packs, SequenceList{0, 2}, 5, batch, Given::first);
  CHECK(packs == std::vector<SequencePack>{{{1}, 20, 0}, made[1], {{4, 5}, 110, 0}, {{0}, 10, 0}, {{3}, 40, 0}});
  split_off(packs, SequenceList{0}, 3, batch);
  CHECK(packs.size() == 5);
}

}  // namespace hdpsim
