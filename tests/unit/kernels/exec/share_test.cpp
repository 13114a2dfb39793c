#include "kernels/exec/share.h"

#include <filesystem>
#include <fstream>

#include "kernels/exec/parameter_tensors.h"
#include "kernels/spec/error.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_training.h"

namespace hdpsim::kernels::exec {
namespace {

// Token of a sequence at a position: the position, so that a test can tell where it came from.
class CountingTokens final : public TokenSource {
 public:
  [[nodiscard]] std::int64_t vocabulary() const override { return 1000; }
  void read(std::int64_t, std::int64_t sequence, std::int64_t begin, std::span<std::int32_t> tokens) const override {
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(100 * sequence + begin++);
  }
};

TEST_CASE("a rank holds its parts of every span, and the next token of each, whoever holds that one", "[exec]") {
  // 12 tokens in 6 parts of 2: rank 0 holds parts 0 and 5, rank 2 parts 2 and 3. The second sequence has 3 tokens for 3
  // ranks of two parts: one token each goes to the first parts.
  const Plan plan = hand_plan(3, 1, {12, 3}, {{{0, 1, 2}, {0, 1}}});
  const Share first = share_of(plan, MicroBatchId(0), 0, CountingTokens());
  CHECK(first.ids == std::vector<std::int32_t>{0, 1, 10, 11, 100});
  CHECK(first.targets == std::vector<std::int32_t>{1, 2, 11, -1, 101});
  CHECK(first.positions == std::vector<std::int32_t>{0, 1, 10, 11, 0});
  const Share last = share_of(plan, MicroBatchId(0), 2, CountingTokens());
  CHECK(last.ids == std::vector<std::int32_t>{4, 5, 6, 7, 102});
  CHECK(last.targets == std::vector<std::int32_t>{5, 6, 7, 8, -1});
  CHECK(last.position == 2);
  CHECK(target_count(plan) == 11 + 2);
}

TEST_CASE("shares are the parts that the plan cuts", "[exec][property]") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("replay: seed " << seed);
    RandomStream random(seed, "shares");
    std::vector<std::int64_t> lengths(1 + random.below(6));
    for (std::int64_t& length : lengths) length = 1 + static_cast<std::int64_t>(random.below(50));
    const Plan plan = random_plan(random, 1 + static_cast<std::int64_t>(random.below(7)), 1, lengths);
    for (std::size_t id = 0; id < plan.micro_batches.size(); ++id) {
      for (std::size_t i = 0; i < plan.micro_batches[id].group.size(); ++i) {
        std::vector<std::int32_t> expected;
        for (const Part& part : parts_of(plan.micro_batches[id], i)) {
          for (std::int64_t t = 0; t < part.tokens; ++t) {
            expected.push_back(static_cast<std::int32_t>(100 * part.sequence.index()) +
                               static_cast<std::int32_t>(part.begin + t));
          }
        }
        const auto rank = static_cast<int>(plan.micro_batches[id].group[i].index());
        CHECK(share_of(plan, MicroBatchId(id), rank, CountingTokens()).ids == expected);
      }
    }
  }
}

TEST_CASE("ranks that gather keys know where the rows of all lie in the documents", "[exec][sharing]") {
  const Plan plan = hand_plan(3, 1, {12, 3}, {{{0, 1, 2}, {0, 1}}});
  const Share share = share_of(plan, MicroBatchId(0), 1, CountingTokens(), {KeyExchange::all_gather, 1, 3});
  // Parts of two tokens; rank 1 holds 1 and 4 of the first document, and the middle token of the second, behind it.
  CHECK(share.ids == std::vector<std::int32_t>{2, 3, 8, 9, 101});
  const std::vector<RowRange> own = {{0, 2, 2}, {2, 8, 2}, {4, 13, 1}};
  CHECK(share.together.held[1] == own);
  CHECK(share.together.all() == 15);
  // One launch has the first piece of every document, the other one the second: they see the same keys.
  REQUIRE(share.launches.size() == 2);
  const std::vector<AttentionBlock> first = {{0, 2, 0, 4, Mask::causal}, {4, 1, 12, 2, Mask::causal}};
  const std::vector<AttentionBlock> second = {{2, 2, 0, 10, Mask::causal}};
  CHECK(share.launches[0] == first);
  CHECK(share.launches[1] == second);
}

TEST_CASE("a rank that trades heads has the rows of its party, as a party of a ring has them", "[exec][sharing]") {
  const Plan plan = hand_plan(4, 1, {16}, {{{3, 2, 1, 0}, {0}}});
  const Share share = share_of(plan, MicroBatchId(0), 0, CountingTokens(), {.inner = 2, .parties = 2});
  // Rank 0 is the last of four: parts 3 and 4. Its party with rank 1 has parts 2, 3 and 4, 5: tokens 4 to 11.
  CHECK(share.ids == std::vector<std::int32_t>{6, 7, 8, 9});
  CHECK(share.together.members == std::vector<int>{1, 0});
  CHECK(share.together.position == 1);
  CHECK(share.together.held == std::vector<std::vector<RowRange>>{{{0, 0, 2}, {2, 6, 2}}, {{0, 2, 2}, {2, 4, 2}}});
  CHECK(share.attended_rows() == 8);
  // Its ring is that of the second ranks of both parties.
  CHECK(share.members == std::vector<int>{2, 0});
  CHECK(share.position == 1);
  CHECK(share.documents.rows(1) == 8);
}

TEST_CASE("synthetic tokens: small ids are frequent, every place has its own, any range reads the same", "[exec]") {
  const auto tokens = make_synthetic_tokens(100, 7);
  std::vector<std::int32_t> all(20000);
  tokens->read(3, 5, 0, all);
  std::vector<std::int32_t> part(100);
  tokens->read(3, 5, 777, part);
  CHECK(std::equal(part.begin(), part.end(), all.begin() + 777));
  tokens->read(3, 6, 777, part);
  CHECK_FALSE(std::equal(part.begin(), part.end(), all.begin() + 777));
  CHECK(*std::min_element(all.begin(), all.end()) == 0);
  CHECK(*std::max_element(all.begin(), all.end()) == 99);
  // Half of all draws are below 100 x (1/2)^2 = 25. Four deviations of 20,000 draws: 4 x 0.5 / sqrt(20,000) = 0.014.
  const auto low = std::count_if(all.begin(), all.end(), [](std::int32_t token) { return token < 25; });
  CHECK(static_cast<double>(low) / 20000 == Approx(0.5).margin(0.014));
}

TEST_CASE("text: a sequence is a range of the files, going round", "[exec]") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "text";
  std::ofstream(path) << "abcde";
  const auto tokens = make_text_tokens({path}, 1);
  CHECK(tokens->vocabulary() == 256);
  std::vector<std::int32_t> read(12);
  tokens->read(0, 0, 0, read);
  for (std::size_t i = 1; i < read.size(); ++i) CHECK(read[i] == (read[i - 1] == 'e' ? 'a' : read[i - 1] + 1));
  CHECK_THROWS_AS(make_text_tokens({folder.path() / "missing"}, 1), DeviceError);
}

TEST_CASE("initial parameters do not depend on how they are asked for", "[exec]") {
  const ParameterLayout layout(tiny_model());
  std::vector<float> all(static_cast<std::size_t>(layout.count()));
  layout.initial_values(3, 0, all);
  std::vector<float> part(1000);
  layout.initial_values(3, 5000, part);
  CHECK(std::equal(part.begin(), part.end(), all.begin() + 5000));
  const Tensor& norm = layout.layers()[1].norm(DensePart::mlp_norm);
  CHECK(all[static_cast<std::size_t>(norm.begin)] == 1);
  double squares = 0;
  for (std::int64_t i = 0; i < layout.embedding().count; ++i) {
    squares += all[static_cast<std::size_t>(i)] * all[static_cast<std::size_t>(i)];
  }
  // 4,392 uniform numbers: their mean square is known to sqrt(0.8 / 4392) = 1.3 %; four times that.
  CHECK(squares / static_cast<double>(layout.embedding().count) == Approx(0.02 * 0.02).epsilon(0.055));
}

}  // namespace
}  // namespace hdpsim::kernels::exec
