#include <cmath>

#include "sim/base/check.h"
#include "sim/plan/impl/hydraulis_strategy.h"
#include "tests/unit/plan/plan_cases.h"
#include "tests/unit/plan/published_cases.h"

namespace hdpsim {
namespace {

// Exchanges that a search may look at: about 50 ms of one core.
constexpr std::int64_t thorough = 1 << 22;
// Hydraulis writes its fits to a file with ten digits and reads them from its solver's output with as many.
constexpr double ten_digits = 1e-7;

double number_of(const Value& value) {
  Diagnostics diagnostics;
  return read<double>(value, diagnostics).value();
}

// Kinds of pipelines with the authors' fits: a s^2 + b s and c, in ms.
std::vector<PipelineKind> kinds_of(const Value& one) {
  std::vector<PipelineKind> kinds;
  for (const Value& kind : one.find("kinds")->items) {
    const double a = number_of(*kind.find("a"));
    const double b = number_of(*kind.find("b"));
    kinds.push_back({.stages = number(*kind.find("stages")),
                     .room = number(*kind.find("room")),
                     .fewest_tokens = number(*kind.find("fewest_tokens")),
                     .per_micro_batch = number_of(*kind.find("c")),
                     .sequence_seconds = [=](std::int64_t tokens) {
                       const auto s = static_cast<double>(tokens);
                       return a * s * s + b * s;
                     }});
  }
  return kinds;
}

Strategy strategy_of(const Value& stated) {
  const std::vector<std::int64_t> kinds = numbers(*stated.find("kinds"));
  return {kinds.begin(), kinds.end()};
}

SequenceList sequences_of(const Value& stated) {
  const std::vector<std::int64_t> places = numbers(stated);
  return {places.begin(), places.end()};
}

bool is_refused(const Value& strategy) {
  return strategy.find("refused") != nullptr;
}

/// What a pipeline of a published plan costs by our prices.
struct Priced {
  double dispatched = 0;
  double seconds = 0;
  SequenceList sequences;
};

Priced priced(const Value& pipeline, const PipelineKind& kind, const std::vector<std::int64_t>& lengths) {
  Priced found;
  double sum = 0;
  double longest = 0;
  double costliest = 0;
  const std::vector<Value>& micro_batches = pipeline.find("micro_batches")->items;
  for (const Value& micro_batch : micro_batches) {
    double cost = 0;
    for (const std::size_t sequence : sequences_of(micro_batch)) {
      cost += kind.sequence_seconds(lengths[sequence]);
      longest = std::max(longest, kind.sequence_seconds(lengths[sequence]));
      found.sequences.push_back(sequence);
    }
    sum += cost;
    costliest = std::max(costliest, cost);
  }
  found.dispatched = kind.dispatched(sum, longest);
  found.seconds = kind.seconds(costliest, micro_batches.size());
  return found;
}

// Every sequence is in one micro-batch of a pipeline that holds it, and the costs are those of what stands there.
void check_work(const StrategyWork& work, const Strategy& strategy, const std::vector<PipelineKind>& kinds,
                const std::vector<std::int64_t>& lengths) {
  std::vector<int> found(lengths.size());
  double last = 0;
  REQUIRE(work.pipelines.size() == strategy.size());
  for (std::size_t i = 0; i < strategy.size(); ++i) {
    const PipelineKind& kind = kinds[strategy[i]];
    double costliest = 0;
    for (const SequenceList& micro_batch : work.pipelines[i].micro_batches) {
      CHECK_FALSE(micro_batch.empty());
      double cost = 0;
      std::int64_t tokens = 0;
      for (const std::size_t sequence : micro_batch) {
        ++found[sequence];
        tokens += lengths[sequence];
        cost += kind.sequence_seconds(lengths[sequence]);
      }
      CHECK(tokens <= kind.room);
      costliest = std::max(costliest, cost);
    }
    const std::size_t count = work.pipelines[i].micro_batches.size();
    CHECK(work.pipelines[i].seconds == Approx(count == 0 ? 0 : kind.seconds(costliest, count)));
    last = std::max(last, work.pipelines[i].seconds);
  }
  CHECK(found == std::vector<int>(lengths.size(), 1));
  CHECK(work.seconds == last);
}

/// A pipeline in which a token takes a second.
PipelineKind plain_kind(std::int64_t stages, std::int64_t room, double per_micro_batch = 0) {
  return {.stages = stages, .room = room, .per_micro_batch = per_micro_batch, .sequence_seconds = [](std::int64_t tokens) {
            return double(tokens);
          }};
}

}  // namespace

TEST_CASE("hydraulis: plans of Hydraulis' own code cost what it says", "[plan][hydraulis][published]") {
  for (const Value& one : cases_of("hydraulis")) {
    INFO("case " << one.find("case")->text);
    const std::vector<PipelineKind> kinds = kinds_of(one);
    const std::vector<std::int64_t> lengths = numbers(*one.find("lengths"));
    for (const Value& stated : one.find("strategies")->items) {
      if (is_refused(stated)) continue;
      double dispatch = 0;
      double step = 0;
      for (const Value& pipeline : stated.find("pipelines")->items) {
        const auto kind = static_cast<std::size_t>(number(*pipeline.find("kind")));
        const Priced ours = priced(pipeline, kinds[kind], lengths);
        CHECK(ours.seconds == Approx(number_of(*pipeline.find("ms"))).epsilon(ten_digits));
        dispatch = std::max(dispatch, ours.dispatched);
        step = std::max(step, ours.seconds);
      }
      CHECK(dispatch == Approx(number_of(*stated.find("dispatch"))).epsilon(ten_digits));
      CHECK(step == Approx(number_of(*stated.find("ms"))).epsilon(ten_digits));
    }
  }
}

TEST_CASE("hydraulis: no strategy ends later than the plan of Hydraulis' own code, in either stage",
          "[plan][hydraulis][published]") {
  for (const Value& one : cases_of("hydraulis")) {
    const std::vector<PipelineKind> kinds = kinds_of(one);
    const std::vector<std::int64_t> lengths = numbers(*one.find("lengths"));
    const StrategySearch search(lengths, kinds);
    double earliest = INFINITY;
    for (const Value& stated : one.find("strategies")->items) {
      INFO("case " << one.find("case")->text << ", strategy " << &stated - one.find("strategies")->items.data());
      const Strategy strategy = strategy_of(stated);
      REQUIRE(search.usable(strategy));
      const StrategyWork work = search.joint(strategy, thorough);
      check_work(work, strategy, kinds, lengths);
      earliest = std::min(earliest, work.seconds);
      if (is_refused(stated)) continue;
      CHECK(work.seconds <= number_of(*stated.find("ms")) * (1 + ten_digits));
      CHECK(work.dispatch <= number_of(*stated.find("dispatch")) * (1 + ten_digits));
      const StrategyWork in_stages = search.two_stages(strategy, thorough / 4);
      check_work(in_stages, strategy, kinds, lengths);
      CHECK(in_stages.dispatch <= number_of(*stated.find("dispatch")) * (1 + ten_digits));
    }
    CHECK(earliest <= number_of(*one.find("ms")) * (1 + ten_digits));
  }
}

TEST_CASE("hydraulis: micro-batches of a pipeline are within 1e-6 of those that half a second of a solver finds",
          "[plan][hydraulis][published]") {
  for (const Value& one : cases_of("hydraulis")) {
    INFO("case " << one.find("case")->text);
    const std::vector<PipelineKind> kinds = kinds_of(one);
    const std::vector<std::int64_t> lengths = numbers(*one.find("lengths"));
    const StrategySearch search(lengths, kinds);
    for (const Value& stated : one.find("strategies")->items) {
      if (is_refused(stated)) continue;
      for (const Value& pipeline : stated.find("pipelines")->items) {
        const auto kind = static_cast<std::size_t>(number(*pipeline.find("kind")));
        const Priced theirs = priced(pipeline, kinds[kind], lengths);
        CHECK(search.micro_batches(kind, theirs.sequences, thorough).seconds <= theirs.seconds * (1 + 1e-6));
      }
    }
  }
}

TEST_CASE("hydraulis: a pipeline of p stages ends after p - 1 more turns of its costliest micro-batch",
          "[plan][hydraulis]") {
  const PipelineKind kind = plain_kind(3, 100, 2);
  CHECK(kind.dispatched(60, 30) == 60 + 2 * 30);
  CHECK(kind.seconds(30, 4) == (30 + 2) * (2 + 4));
}

TEST_CASE("hydraulis: more micro-batches fill a pipeline better, until their fixed time is dearer",
          "[plan][hydraulis]") {
  // Twelve sequences of 10 s on 4 stages: (120 / v + c)(3 + v).
  const std::vector<std::int64_t> lengths(12, 10);
  SequenceList all(12);
  for (std::size_t i = 0; i < 12; ++i) all[i] = i;
  const StrategySearch free(lengths, {plain_kind(4, 120)});
  CHECK(free.micro_batches(0, all, 1000).micro_batches.size() == 12);  // 150; six: 180
  CHECK(free.micro_batches(0, all, 1000).seconds == 150);
  const StrategySearch dear(lengths, {plain_kind(4, 120, 10)});
  CHECK(dear.micro_batches(0, all, 1000).micro_batches.size() == 6);  // 270; four: 280, twelve: 300
  CHECK(dear.micro_batches(0, all, 1000).seconds == 270);
  PipelineKind full_kernels = plain_kind(4, 120);
  full_kernels.fewest_tokens = 30;
  const StrategySearch full(lengths, {full_kernels});
  CHECK(full.micro_batches(0, all, 1000).micro_batches.size() == 4);  // of 30 tokens
}

TEST_CASE("hydraulis: sequences that each fill more than half of a micro-batch get one each", "[plan][hydraulis]") {
  // 40 sequences of 51 of 100 tokens: 21 micro-batches have room for the tokens, but hold 21 sequences.
  const std::vector<std::int64_t> lengths(40, 51);
  const StrategySearch search(lengths, {plain_kind(1, 100)});
  CHECK(search.joint({0}, 1000).pipelines[0].micro_batches.size() == 40);
}

TEST_CASE("hydraulis: unlike pipelines end together", "[plan][hydraulis]") {
  // The second kind is twice as fast: of 90 s it takes 60 s in 30.
  PipelineKind fast = plain_kind(1, 1000);
  fast.sequence_seconds = [](std::int64_t tokens) { return double(tokens) / 2; };
  const std::vector<std::int64_t> lengths = {20, 20, 15, 10, 10, 10, 5};
  const std::vector<PipelineKind> kinds = {plain_kind(1, 1000), fast};
  const StrategySearch search(lengths, kinds);
  const StrategyWork work = search.joint({0, 1}, 10000);
  check_work(work, {0, 1}, kinds, lengths);
  CHECK(work.dispatch == 30);
  CHECK(work.seconds == 30);
}

TEST_CASE("hydraulis: sequences go only where they fit, and a pipeline without any idles", "[plan][hydraulis]") {
  const std::vector<std::int64_t> lengths = {50, 50, 50, 50};
  const std::vector<PipelineKind> kinds = {plain_kind(1, 50), plain_kind(1, 49)};
  const StrategySearch search(lengths, kinds);
  CHECK(search.usable({1, 0}));
  CHECK_FALSE(search.usable({1, 1}));
  const StrategyWork work = search.joint({0, 1}, 1000);
  check_work(work, {0, 1}, kinds, lengths);
  CHECK(work.seconds == 200);
  CHECK(work.pipelines[1].micro_batches.empty());
  CHECK_THROWS_AS(search.joint({1}, 1000), CheckFailure);
}

TEST_CASE("exchanges of items take pairs where single items do not help", "[plan][hydraulis]") {
  // 8 + 5 + 4 and 7 + 6: one for one makes the longer bin 16 at best, but 5 + 4 for 7 both 15.
  ItemCosts costs{{8, 7, 6, 5, 4}, {{8, 7, 6, 5, 4}}};
  std::vector<Bin> bins(2);
  for (Bin& bin : bins) bin.room = bin.longest = 100;
  for (const std::size_t item : {0, 3, 4}) bins[0].add(item, costs);
  for (const std::size_t item : {1, 2}) bins[1].add(item, costs);
  std::int64_t none = 0;
  exchange_items(bins, costs, 0, none);
  CHECK(last_end(bins, costs) == 17);
  std::int64_t budget = 1000;
  exchange_items(bins, costs, 0, budget);
  CHECK(last_end(bins, costs) == 15);
  CHECK(budget > 0);
  CHECK(budget < 1000);
}

TEST_CASE("exchanges of items leave every bin its room, and no item too long for it", "[plan][hydraulis]") {
  ItemCosts costs{{60, 40, 30, 10}, {{60, 40, 30, 10}}};
  std::vector<Bin> bins(2);
  bins[0].room = bins[0].longest = 200;
  bins[1].room = 50;
  bins[1].longest = 30;
  for (const std::size_t item : {0, 1, 2, 3}) bins[0].add(item, costs);
  std::int64_t budget = 1000;
  exchange_items(bins, costs, 0, budget);
  CHECK(bins[1].items == std::vector<std::size_t>{2, 3});
  CHECK(bins[1].tokens == 40);
}

TEST_CASE("hydraulis: usual strategies fill the pool", "[plan][hydraulis]") {
  CHECK(usual_strategies(8, 4) == std::vector<PipelineDegrees>{{1, 1, 1, 1, 1, 1, 1, 1},
                                                               {2, 2, 2, 2},
                                                               {4, 4},
                                                               {8},
                                                               {4, 1, 1, 1, 1},
                                                               {4, 2, 2},
                                                               {4, 2, 1, 1},
                                                               {2, 2, 1, 1, 1, 1}});
  for (const auto& [ranks, holding] : {std::pair<std::int64_t, std::int64_t>{48, 12}, {40, 5}, {1, 1}, {512, 256}}) {
    INFO(ranks << " ranks, " << holding);
    const std::vector<PipelineDegrees> strategies = usual_strategies(ranks, holding);
    CHECK(double(strategies.size()) <= 2 + std::log2(ranks) + 3 * std::log2(holding));
    for (const PipelineDegrees& degrees : strategies) {
      std::int64_t sum = 0;
      for (const std::int64_t degree : degrees) sum += degree;
      CHECK(sum == ranks);
      CHECK(std::is_sorted(degrees.rbegin(), degrees.rend()));
    }
  }
}

TEST_CASE("hydraulis: a joint search spares a pipeline the turns that its longest sequence would make dear",
          "[plan][hydraulis]") {
  // Two pipelines that hold 100 tokens. In two stages both get 120 s; 90 and 30 s are two micro-batches that count as
  // 90 s each. With 90 s alone, and the others one by one, the last one ends after five times 30 s.
  const std::vector<PipelineKind> kinds = {plain_kind(1, 100)};
  const std::vector<std::int64_t> lengths = {90, 30, 30, 30, 30, 30};
  const StrategySearch search(lengths, kinds);
  const StrategyWork in_stages = search.two_stages({0, 0}, 10000);
  check_work(in_stages, {0, 0}, kinds, lengths);
  CHECK(in_stages.dispatch == 120);
  CHECK(in_stages.seconds == 180);
  const StrategyWork joint = search.joint({0, 0}, 10000);
  check_work(joint, {0, 0}, kinds, lengths);
  CHECK(joint.seconds == 150);
  // The policy has the same choice.
  PlanningContext context = small_pool(2);
  context.context = 100;
  const std::string ones = "hydraulis: {strategies: [[1, 1]]";
  CHECK(plan_of(ones + "}", context, lengths).schedule[0].size() == 2);
  CHECK(plan_of(ones + ", search: joint}", context, lengths).schedule[0].size() == 1);
}

}  // namespace hdpsim
