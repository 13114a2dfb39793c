#include "sim/trace/batch_source.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>

#include "sim/base/check.h"
#include "sim/trace/trace_file.h"
#include "tests/support/catch.h"
#include "tests/unit/trace/trace_files.h"

namespace hdpsim {
namespace {

using Sequences = std::vector<Sequence>;
using Tokens = std::vector<std::int64_t>;

std::shared_ptr<const LengthTrace> trace(Tokens tokens, Tokens steps = {}) {
  return std::make_shared<LengthTrace>(LengthTrace{std::move(tokens), std::move(steps)});
}

LengthDistributionPtr always(std::int64_t tokens) {
  return make_distribution(std::vector<LengthBin>{{tokens, tokens, 1}});
}

LengthDistributionPtr long_tailed() {
  return make_distribution(Lognormal{.mu = 6, .sigma = 2, .min = 1, .max = 1 << 20});
}

std::int64_t longest(const Batch& batch) {
  std::int64_t longest = 0;
  for (const Sequence& sequence : batch.sequences) longest = std::max(longest, sequence.tokens);
  return longest;
}

constexpr Overlong choices[] = {Overlong::split, Overlong::truncate, Overlong::drop};

}  // namespace

TEST_CASE("split cuts a long document into pieces of the context and a rest, of one document number", "[trace]") {
  const auto batches =
      make_batches(always(25), {.context = 10, .tokens_per_step = 50, .overlong = Overlong::split, .seed = 1});
  CHECK(batches->step(0).sequences == Sequences{{10, 0}, {10, 0}, {5, 0}, {10, 1}, {10, 1}, {5, 1}});
}

TEST_CASE("what steps take of a trace: how often they read it, and what is longer than the context", "[trace]") {
  // 100 tokens, 60 of which are in two documents of four above a context of 20.
  const Tokens lengths = {25, 20, 20, 35};
  const auto use = [&](Overlong overlong, std::int64_t steps) {
    const BatchOptions options{.context = 20, .tokens_per_step = 50, .overlong = overlong, .seed = 1};
    return make_batches(trace(lengths), options)->use(steps).value();
  };
  const TraceUse split = use(Overlong::split, 5);
  CHECK(split.documents == 4);
  CHECK(split.times_read == 5 * 50 / 100.0);
  CHECK(split.overlong == 2);
  CHECK(split.overlong_documents == 0.5);
  CHECK(split.overlong_tokens == 0.6);
  CHECK(use(Overlong::truncate, 5).times_read == 5 * 50 / 80.0);
  CHECK(use(Overlong::drop, 4).times_read == 4 * 50 / 40.0);
  // Of a trace with steps, the steps count: three are one and a half times its two.
  const BatchOptions options{.context = 20, .tokens_per_step = 1, .seed = 1};
  CHECK(make_batches(trace(lengths, {3, 3, 8, 8}), options)->use(3)->times_read == 1.5);
  CHECK_FALSE(make_batches(always(25), options)->use(3));
}

TEST_CASE("a random order reads every document once a pass, on every pass the same, and names the rows of the file",
          "[trace]") {
  constexpr std::size_t rows = 1000;
  Tokens lengths(rows);
  std::iota(lengths.begin(), lengths.end(), std::int64_t{1});
  const std::int64_t all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const BatchOptions pass{.context = rows, .tokens_per_step = all};
  const auto batches = make_batches(trace(lengths), pass, make_random_order(rows, 7));
  const Sequences first = batches->step(0).sequences;
  const Sequences second = batches->step(1).sequences;
  REQUIRE(first.size() == rows);
  REQUIRE(second.size() == rows);
  std::vector<bool> seen(rows);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    const auto row = static_cast<std::size_t>(first[i].document);
    CHECK(first[i].tokens == lengths[row]);
    CHECK_FALSE(seen[row]);
    seen[row] = true;
    moved += row == i ? 0 : 1;
    CHECK(second[i] == Sequence{first[i].tokens, first[i].document + static_cast<std::int64_t>(rows)});
  }
  CHECK(moved > rows / 2);  // one document is expected to keep its place
  CHECK(batches->use(1)->order == TraceOrder::shuffle);
  CHECK(make_batches(trace(lengths), pass)->use(1)->order == TraceOrder::file);
}

TEST_CASE("an order is that of its seed, and every order of three rows is as likely", "[trace]") {
  CHECK(*make_random_order(100, 1) == *make_random_order(100, 1));
  CHECK(*make_random_order(100, 1) != *make_random_order(100, 2));
  std::map<std::vector<std::uint32_t>, int> seen;
  constexpr int seeds = 6000;
  for (int seed = 0; seed < seeds; ++seed) ++seen[*make_random_order(3, static_cast<std::uint64_t>(seed))];
  REQUIRE(seen.size() == 6);
  const double deviation = std::sqrt(seeds * (1 / 6.0) * (5 / 6.0));
  for (const auto& [order, count] : seen) CHECK(std::abs(count - seeds / 6.0) < 5 * deviation);
}

TEST_CASE("the halves of a trace are those of its file, in whatever order it is read", "[trace]") {
  std::vector<Length> sorted(100, Length{10});
  sorted.resize(200, Length{100});
  ListedLengths source(std::move(sorted));
  const auto lengths = std::make_shared<LengthTrace>(collect(source));
  const BatchOptions options{.context = 100, .tokens_per_step = 100};
  for (const RowOrder& order : {RowOrder(), make_random_order(200, 1)}) {
    const auto use = make_batches(lengths, options, order)->use(1);
    REQUIRE(use->halves);
    CHECK(use->halves->first_mean == 10);
    CHECK(use->halves->second_mean == 100);
    CHECK(use->halves->differ);
  }
}

TEST_CASE("the sequences of a step are estimated without making it", "[trace]") {
  const BatchOptions options{.context = 10, .tokens_per_step = 1000, .overlong = Overlong::split, .seed = 1};
  CHECK(make_batches(always(25), options)->sequences_per_step() == 1000 / 25.0 * 3);
  CHECK(make_batches(always(1), options)->sequences_per_step() == 1000);
  CHECK(make_batches(trace({25, 5}), options)->sequences_per_step() == 1000 / 30.0 * 4);
  CHECK(make_batches(trace({25, 5, 95}, {0, 0, 1}), options)->sequences_per_step() == 10);  // the larger step
  const BatchOptions large{.context = 1 << 16, .tokens_per_step = 1 << 26, .seed = 1};
  const auto drawn = make_batches(long_tailed(), large);
  CHECK(drawn->sequences_per_step() == Approx(static_cast<double>(drawn->step(0).sequences.size())).epsilon(0.1));
}

TEST_CASE("truncate keeps the first tokens of a long document, and the last sequence is cut to fit", "[trace]") {
  const auto batches =
      make_batches(always(25), {.context = 10, .tokens_per_step = 32, .overlong = Overlong::truncate, .seed = 1});
  CHECK(batches->step(0).sequences == Sequences{{10, 0}, {10, 1}, {10, 2}, {2, 3}});
}

TEST_CASE("drop leaves out what is longer than the context, and keeps what is as long", "[trace]") {
  const BatchOptions options{.context = 10, .tokens_per_step = 21, .overlong = Overlong::drop, .seed = 1};
  CHECK(make_batches(trace({10, 11, 4, 7}), options)->step(0).sequences == Sequences{{10, 0}, {4, 2}, {7, 3}});
  CHECK(make_batches(always(10), options)->step(0).sequences == Sequences{{10, 0}, {10, 1}, {1, 2}});
}

TEST_CASE("a batch meets its budget exactly and no sequence passes the context, whatever becomes of long documents",
          "[trace]") {
  RandomStream random(2024, "batch property");
  for (int round = 0; round < 300; ++round) {
    const BatchOptions options{.context = static_cast<std::int64_t>(16 + random.below(5000)),
                               .tokens_per_step = static_cast<std::int64_t>(1 + random.below(200'000)),
                               .overlong = choices[random.below(3)],
                               .seed = random.next()};
    const auto step = static_cast<std::int64_t>(random.below(1000));
    INFO("replay: context " << options.context << ", tokens_per_step " << options.tokens_per_step << ", overlong "
                            << static_cast<int>(options.overlong) << ", seed " << options.seed << ", step " << step);
    LengthTrace lengths;
    RandomStream draws(options.seed, "trace of the property");
    for (int i = 0; i < 3000; ++i) lengths.tokens.push_back(long_tailed()->draw(draws));
    for (const bool generated : {true, false}) {
      CAPTURE(generated);
      const auto batches = generated ? make_batches(long_tailed(), options)
                                     : make_batches(std::make_shared<LengthTrace>(lengths), options);
      const Batch batch = batches->step(step);
      REQUIRE(batch.tokens() == options.tokens_per_step);
      REQUIRE(longest(batch) <= options.context);
      REQUIRE(std::all_of(batch.sequences.begin(), batch.sequences.end(), [](Sequence s) { return s.tokens > 0; }));
    }
  }
}

TEST_CASE("step k of generated lengths is the same asked for alone, in order, or from many threads", "[trace]") {
  const BatchOptions options{.context = 4096, .tokens_per_step = 100'000, .overlong = Overlong::split, .seed = 7};
  const auto batches = make_batches(long_tailed(), options);
  std::vector<Sequences> in_order;
  in_order.reserve(20);
  for (int k = 0; k < 20; ++k) in_order.push_back(batches->step(k).sequences);
  CHECK(make_batches(long_tailed(), options)->step(13).sequences == in_order[13]);
  CHECK(in_order[13] != in_order[14]);
  CHECK(make_batches(long_tailed(), {.context = 4096, .tokens_per_step = 100'000, .seed = 8})->step(13).sequences !=
        in_order[13]);

  std::vector<Sequences> threaded(20);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int k = t; k < 20; k += 4) threaded[static_cast<std::size_t>(k)] = batches->step(k).sequences;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(threaded == in_order);
}

TEST_CASE("a document straddling two steps of a trace goes on where it was cut", "[trace]") {
  // Documents 6, 25, 3 (34 tokens) in steps of 15: [6 | 9 of 25], [1+10+4 of 25], [1 of 25, 3 | lap 1: 6, 5 of 25]
  const auto batches =
      make_batches(trace({6, 25, 3}), {.context = 10, .tokens_per_step = 15, .overlong = Overlong::split, .seed = 1});
  CHECK(batches->step(0).sequences == Sequences{{6, 0}, {9, 1}});
  CHECK(batches->step(1).sequences == Sequences{{1, 1}, {10, 1}, {4, 1}});
  CHECK(batches->step(2).sequences == Sequences{{1, 1}, {3, 2}, {6, 3}, {5, 4}});
}

TEST_CASE("a lap of a trace uses every token once", "[trace]") {
  RandomStream random(5, "lap property");
  for (int round = 0; round < 50; ++round) {
    LengthTrace lengths;
    const std::size_t documents = 1 + random.below(3000);
    for (std::size_t i = 0; i < documents; ++i)
      lengths.tokens.push_back(static_cast<std::int64_t>(1 + random.below(500)));
    const std::int64_t all = std::accumulate(lengths.tokens.begin(), lengths.tokens.end(), std::int64_t{0});
    const auto steps = static_cast<std::int64_t>(1 + random.below(20));
    INFO("replay: round " << round << ", documents " << documents << ", steps " << steps);
    // `steps` steps of all / steps tokens, and what is left over in one more, are less than two laps.
    const std::int64_t budget = std::max<std::int64_t>(1, all / steps);
    const auto batches =
        make_batches(std::make_shared<LengthTrace>(lengths), {.context = 100, .tokens_per_step = budget});
    std::map<std::int64_t, std::int64_t> used;
    for (std::int64_t k = 0; k * budget < all; ++k) {
      for (const Sequence& sequence : batches->step(k).sequences) used[sequence.document] += sequence.tokens;
    }
    // The last document of the first lap is used up in these steps.
    for (std::size_t i = 0; i < documents; ++i) REQUIRE(used[static_cast<std::int64_t>(i)] == lengths.tokens[i]);
  }
}

TEST_CASE("a trace shorter than a step is repeated within it under new document numbers", "[trace]") {
  const auto batches = make_batches(trace({4, 3}), {.context = 10, .tokens_per_step = 16});
  CHECK(batches->step(0).sequences == Sequences{{4, 0}, {3, 1}, {4, 2}, {3, 3}, {2, 4}});
  CHECK(batches->step(1).sequences == Sequences{{2, 4}, {3, 5}, {4, 6}, {3, 7}, {4, 8}});
}

TEST_CASE("a trace with steps replays them in ascending order, wherever their rows stand, and starts again",
          "[trace]") {
  const auto batches = make_batches(trace({5, 25, 6, 7}, {30, 10, 30, 20}), {.context = 10, .tokens_per_step = 1});
  CHECK(batches->step(0).sequences == Sequences{{10, 1}, {10, 1}, {5, 1}});
  CHECK(batches->step(1).sequences == Sequences{{7, 3}});
  CHECK(batches->step(2).sequences == Sequences{{5, 0}, {6, 2}});
  CHECK(batches->step(3).sequences == batches->step(0).sequences);
}

TEST_CASE("a curriculum is a file whose steps say what is trained when: stage after stage, with what is replayed",
          "[trace]") {
  // Stage 1 trains two steps of 20-odd tokens; stage 2 what became better known, with one of stage 1's replayed.
  const TraceFolder folder;
  const auto path =
      folder.write("curriculum.csv", "stage,at_step,tokens\n2,2,31\n1,0,21\n1,1,22\n2,3,32\n1,0,23\n2,3,21\n");
  const auto batches = make_batches(load_lengths(path, {.column = "tokens", .step_column = "at_step"}),
                                    {.context = 64, .tokens_per_step = 64});
  const auto trained = [&](std::int64_t step) {
    Tokens lengths;
    for (const Sequence& sequence : batches->step(step).sequences) lengths.push_back(sequence.tokens);
    return lengths;
  };
  CHECK(trained(0) == Tokens{21, 23});
  CHECK(trained(1) == Tokens{22});
  CHECK(trained(2) == Tokens{31});
  CHECK(trained(3) == Tokens{32, 21});
  CHECK(batches->lap() == 4);
}

TEST_CASE("batches that cannot be made are refused", "[trace]") {
  const TraceFolder folder;
  CHECK(folder.complaint([&] { return make_batches(always(5), {.context = 0, .tokens_per_step = -1}); }) ==
        "error: context 0 is below 1 token\nerror: tokens_per_step -1 is below 1 token\n");
  const BatchOptions dropping{.context = 10, .tokens_per_step = 100, .overlong = Overlong::drop, .seed = 1};
  const std::string help = "        split or truncate long documents, or take a longer context\n";
  CHECK(folder.complaint([&] { return make_batches(always(11), dropping)->step(0); }) ==
        "error: none of 1000000 documents fits the context of 10 tokens\n" + help);
  CHECK(folder.complaint([&] {
    return make_batches(trace({11, 12}), dropping);
  }) == "error: no document of the trace fits the context of 10 tokens\n" + help);
  CHECK(folder.complaint([&] {
    return make_batches(trace({5, 12, 13}, {1, 2, 2}), dropping);
  }) == "error: no document of step 2 fits the context of 10 tokens\n" + help);
  BatchOptions in_a_study = dropping;
  in_a_study.context_position = {"study.yaml", 3, 10};
  CHECK_THAT(folder.complaint([&] { return make_batches(trace({11}), in_a_study); }),
             Catch::StartsWith("study.yaml:3:10: error: no document of the trace"));
  CHECK(folder.complaint([&] { return make_batches(trace({}), dropping); }) == "error: the trace holds no lengths\n");
  CHECK_THROWS_AS(make_batches(always(5), dropping)->step(-1), CheckFailure);
}

TEST_CASE("a lap is the steps in which every token of a trace is used once", "[trace]") {
  const BatchOptions tens{.context = 10, .tokens_per_step = 10, .overlong = Overlong::split, .seed = 1};
  CHECK(make_batches(trace({10, 10}), tens)->lap() == 2);
  CHECK(make_batches(trace({10, 10, 1}), tens)->lap() == 3);  // the third step begins the trace again to be full
  CHECK(make_batches(trace({25, 5}), {.context = 10, .tokens_per_step = 10, .overlong = Overlong::drop, .seed = 1})
            ->lap() == 1);
  CHECK(make_batches(trace({1, 2, 3}, {7, 7, 9}), tens)->lap() == 2);  // steps that the trace names
  CHECK_FALSE(make_batches(always(5), tens)->lap());
}

}  // namespace hdpsim
