#include <cmath>

#include "sim/plan/impl/flexsp_groups.h"
#include "tests/unit/plan/plan_cases.h"
#include "tests/unit/plan/published_cases.h"

namespace hdpsim {
namespace {

double real(const Value& value) {
  Diagnostics diagnostics;
  return read<double>(value, diagnostics).value();
}

// FlexSP's fitted times of a group in ms (flexsp_solver/utils.py): compute, and an all-to-all of 16 tensors a layer, in
// MiB over GB/s.
GroupTimes fitted_times(const Value& one) {
  const double alpha1 = real(*one.find("alpha1"));
  const double alpha2 = real(*one.find("alpha2"));
  const double beta1 = real(*one.find("beta1"));
  const double mib_per_token = 16 * real(*one.find("layers")) * real(*one.find("hidden")) / 1048576;
  std::vector<double> rates;  // from degree 2 on
  for (const Value& rate : one.find("gb_per_s")->items) rates.push_back(real(rate));
  const auto sequence_seconds = [=](std::int64_t tokens, std::int64_t degree) {
    const auto s = static_cast<double>(tokens);
    const double rate = rates[static_cast<std::size_t>(std::log2(degree)) - 1];
    return (alpha1 * s * s + alpha2 * s + mib_per_token * s / rate) / static_cast<double>(degree);
  };
  return {[=](std::int64_t) { return beta1; }, sequence_seconds};
}

SequenceList list_of(const Value& run) {
  const std::vector<std::int64_t> places = numbers(run);
  return {places.begin(), places.end()};
}

std::vector<SequenceList> runs_of(const Value& count) {
  std::vector<SequenceList> runs;
  for (const Value& run : count.find("runs")->items) runs.push_back(list_of(run));
  return runs;
}

}  // namespace

TEST_CASE("flexsp: batches are cut as FlexSP's own code cuts them", "[plan][flexsp][published]") {
  for (const Value& one : cases_of("flexsp")) {
    INFO("case " << one.find("case")->text);
    const Batch batch = batch_of(numbers(*one.find("lengths")));
    for (const Value& count : one.find("counts")->items) {
      const std::vector<SequenceList> runs = runs_of(count);
      CHECK(even_runs(batch, longest_first(batch), runs.size()) == runs);
    }
  }
}

TEST_CASE("flexsp: groups end within 3 % of those that its mixed-integer program finds in seconds",
          "[plan][flexsp][published]") {
  for (const Value& one : cases_of("flexsp")) {
    INFO("case " << one.find("case")->text);
    const Batch batch = batch_of(numbers(*one.find("lengths")));
    const GroupPool pool{number(*one.find("ranks")), number(*one.find("capacity")), 2};
    const GroupPrices prices(batch, pool, fitted_times(one));
    for (const Value& count : one.find("counts")->items) {
      const std::vector<SequenceList> runs = runs_of(count);
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const auto slot = early_groups(batch, runs[i], pool, prices);
        REQUIRE(slot);
        CHECK(ranks_of(*slot) == pool.ranks);
        CHECK(largest_load(*slot) <= 1.03 * real(count.find("ms")->items[i]));
      }
    }
  }
}

TEST_CASE("flexsp: the load of a group is the time of its sequences, which it holds", "[plan][flexsp]") {
  // A token takes a second on one rank, and a group 5 seconds more.
  const GroupTimes times{[](std::int64_t) { return 5.0; },
                         [](std::int64_t tokens, std::int64_t degree) { return double(tokens) / double(degree); }};
  const GroupPool pool{4, 100, 1};
  const Batch batch = batch_of({150, 80, 40, 30});
  const auto slot = early_groups(batch, longest_first(batch), pool, GroupPrices(batch, pool, times));
  REQUIRE(slot);
  CHECK(largest_load(*slot) ==
        80);  // 300 tokens on 4 ranks are 75 + 5: 150 on two, 80 and 70 on one rank each end at 85
  for (const SlotGroup& group : *slot) {
    std::int64_t tokens = 0;
    for (const std::size_t sequence : group.sequences) tokens += batch.sequences[sequence].tokens;
    CHECK(tokens <= 100 * group.degree);
    CHECK(group.load == 5 + double(tokens) / double(group.degree));
  }
  const Batch unfit = batch_of({100, 100, 100, 101});
  CHECK_FALSE(early_groups(unfit, {3, 0, 1, 2}, pool, GroupPrices(unfit, pool, times)));
}

TEST_CASE("flexsp: all ranks take part in every micro-batch, in groups of at least min_cp", "[plan][flexsp]") {
  PlanningContext context = small_pool();
  context.work.per_area = 0.01;
  const Plan plan = plan_of("flexsp: {min_cp: 2}", context, {390, 200, 150, 120, 90, 80, 70, 60, 50, 40, 30, 20});
  REQUIRE_FALSE(plan.micro_batches.empty());
  for (const auto& list : plan.schedule) CHECK_FALSE(list.empty());
  for (const MicroBatch& micro_batch : plan.micro_batches) CHECK(micro_batch.group.size() >= 2);
}

// The sequences of each group of 16 ranks.
std::vector<Indices> evened_packs(std::int64_t ranks, std::int64_t capacity, const std::vector<std::int64_t>& lengths) {
  PlanningContext context = small_pool(ranks);
  context.capacity = capacity;
  context.context = 16 * capacity;
  const Plan plan = plan_of("flexsp-homogeneous: {cp: 16}", context, lengths);
  CHECK(check_plan(plan).empty());
  std::vector<Indices> packs;
  for (const MicroBatch& micro_batch : plan.micro_batches) packs.push_back(sequences_of(micro_batch));
  return packs;
}

TEST_CASE("flexsp-homogeneous: groups of 16 ranks or more even out the last micro-batch", "[plan][flexsp]") {
  // Packs of at most 144 tokens: 144, and 2 and 3, of which the idle group gets 3. The mean is 49, but 144 is the only
  // one.
  CHECK(evened_packs(48, 10, {144, 3, 2}) == std::vector<Indices>{{0}, {2}, {1}});
  // Packs of 2 tokens and 1: the mean of 1.5 counts as 1, which the second one has.
  CHECK(evened_packs(32, 100, {1, 1, 1}) == std::vector<Indices>{{1, 2}, {0}});
  // Packs of 138 + 4, 7 and 2 tokens with a mean of 50: with the 138 the second would have more than 144, it gets
  // the 4.
  CHECK(evened_packs(48, 10, {2, 7, 138, 4}) == std::vector<Indices>{{2}, {1, 3}, {0}});
  // Two sequences for three groups: one stays idle.
  CHECK(evened_packs(48, 63, {5, 28}) == std::vector<Indices>{{1}, {0}});
}

}  // namespace hdpsim
