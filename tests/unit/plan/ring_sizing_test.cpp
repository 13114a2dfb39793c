#include "sim/plan/impl/ring_sizing.h"

#include <limits>

#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {
namespace {

constexpr double no_limit = std::numeric_limits<double>::infinity();
constexpr OffloadRule automatic{OffloadRule::Mode::automatic, 0};

// 10 layers: r = 1 leaves 2 of 10, so that a rank holds up to 500 tokens. The forward pass of a token takes 1/3 s, its
// copy 1 ms: hidden. Host memory is ample.
PlanningContext pool_with_host() {
  PlanningContext context = small_pool();
  context.work.offload_per_token = 0.001;
  context.host_tokens = 1'000'000;
  return context;
}

}  // namespace

TEST_CASE("sizing without offload is D = ceil(s / C)", "[plan][sizing]") {
  const RingSizing sizing(small_pool(), {});
  CHECK(sizing.size(100, no_limit).degree == 1);
  CHECK(sizing.size(101, no_limit).degree == 2);
  CHECK(sizing.size(800, no_limit).degree == 8);
  CHECK(sizing.size(800, no_limit).offload == 0);
}

TEST_CASE("sizing: offload takes the fewest ranks that hold the sequence, and no higher ratio than that needs",
          "[plan][sizing]") {
  const RingSizing sizing(pool_with_host(), automatic);
  // 800 tokens at up to 500 a rank: 2 ranks of 400. A quarter of 400 may stay: 1 - 0.8 r = 0.25, r = 0.9375.
  const RingSize size = sizing.size(800, no_limit);
  CHECK(size.degree == 2);
  CHECK(size.offload == Approx(0.9375));
  CHECK(400 * resident_share(size.offload, 10) <= 100);
  CHECK(sizing.size(100, no_limit).offload == 0);
}

TEST_CASE("sizing: a copy that the forward pass does not hide bounds the ratio", "[plan][sizing]") {
  PlanningContext context = pool_with_host();
  // Forward 1/3 s a token, all copies 2/3 s: half of the layers can move, so that a rank holds 200 tokens.
  context.work.offload_per_token = 2.0 / 3;
  CHECK(RingSizing(context, automatic).size(800, no_limit).degree == 4);
}

TEST_CASE("sizing: long sequences hide more, because their attention takes longer", "[plan][sizing]") {
  PlanningContext context = pool_with_host();
  context.work.offload_per_token = 1e9;
  CHECK(RingSizing(context, automatic).size(800, no_limit).degree == 8);
  context.work.per_area = 1e9;
  CHECK(RingSizing(context, automatic).size(800, no_limit).degree == 2);
}

TEST_CASE("sizing: host memory bounds the ratio", "[plan][sizing]") {
  PlanningContext context = pool_with_host();
  context.host_tokens = 100;  // a rank holds 100 on the device and 100 on the host
  const RingSize size = RingSizing(context, automatic).size(800, no_limit);
  CHECK(size.degree == 4);
  CHECK(200 * (1 - resident_share(size.offload, 10)) == Approx(100));
  context.host_tokens.reset();
  CHECK(RingSizing(context, automatic).size(800, no_limit).degree == 8);
}

TEST_CASE("sizing: balance bounds the degree from below", "[plan][sizing]") {
  const RingSizing sizing(pool_with_host(), automatic);
  CHECK(sizing.size(800, 200).degree == 4);  // 800 s of compute on 4 ranks: 200 s
  CHECK(sizing.size(800, 199).degree == 5);
  CHECK(sizing.size(800, 50).degree == 8);  // even r = 0 takes 100 s
}

TEST_CASE("sizing: memory comes before the other bounds", "[plan][sizing]") {
  PlanningContext context = pool_with_host();
  context.ranks = 2;
  CHECK(RingSizing(context, automatic).size(800, 1).degree == 2);
}

TEST_CASE("sizing: a fixed ratio is used as it is, hidden or not", "[plan][sizing]") {
  PlanningContext context = pool_with_host();
  context.work.offload_per_token = 1e9;
  // resident_share(0.5) = (2 + 4) / 10: 166 tokens a rank.
  const RingSize size = RingSizing(context, {OffloadRule::Mode::fixed, 0.5}).size(800, no_limit);
  CHECK(size.degree == 5);
  CHECK(size.offload == 0.5);
}

TEST_CASE("sizing: with a fixed ratio a rank holds what device and host hold of it", "[plan][sizing]") {
  PlanningContext context = pool_with_host();
  const auto most = [&] { return RingSizing(context, {OffloadRule::Mode::fixed, 0.25}).most_tokens_per_rank(); };
  CHECK(most() == 125);      // 2 + 0.75 x 8 of 10 layers stay
  context.host_tokens = 22;  // a quarter of 80 % leaves
  CHECK(most() == 110);
  context.host_tokens = 1;  // a rank is given C tokens whatever the host holds
  CHECK(most() == 100);
}

// A quarter of what a layer keeps goes to the host whole, and the rest of a token takes 0.3 s to compute again.
PlanningContext token_wise_pool() {
  PlanningContext context = pool_with_host();
  context.work.copied_whole = 0.25;
  context.work.again_per_token = 0.3;
  return context;
}
constexpr OffloadRule token_wise{OffloadRule::Mode::token_wise, 0};

TEST_CASE("sizing: token-wise, the share of the tokens is copied that a forward pass hides", "[plan][sizing]") {
  PlanningContext context = token_wise_pool();
  const auto size = [&] { return RingSizing(context, token_wise).size(800, no_limit); };
  CHECK(size().degree == 2);  // two of ten layers stay: 500 tokens a rank
  CHECK(size().token_wise);
  CHECK(size().offload == 1);
  // Forward takes 1/3 s a token, and all copies 2/3 s: half of them are hidden, 0.25 + 0.75 r.
  context.work.offload_per_token = 2.0 / 3;
  CHECK(size().degree == 2);
  CHECK(size().offload == Approx(1.0 / 3).margin(1e-6));
  context.work.offload_per_token = (1.0 / 3) / 0.26;
  CHECK(size().offload == Approx(0.01 / 0.75).margin(1e-6));
  // Not even what goes whole is hidden.
  context.work.offload_per_token = (1.0 / 3) / 0.24;
  CHECK(size().degree == 8);
  CHECK_FALSE(size().token_wise);
}

TEST_CASE("sizing: token-wise, host memory bounds the share of the tokens", "[plan][sizing]") {
  PlanningContext context = token_wise_pool();
  // Of 400 tokens on a rank 320 leave it. The host holds half of these: 0.25 + 0.75 r = 0.5.
  context.host_tokens = 160;
  const RingSize size = RingSizing(context, token_wise).size(800, no_limit);
  CHECK(size.degree == 2);
  CHECK(size.offload == Approx(1.0 / 3).margin(1e-6));
  // A quarter of 80 % of 250 tokens, and nothing of the others: more tokens a rank would not fit.
  context.host_tokens = 50;
  CHECK(RingSizing(context, token_wise).most_tokens_per_rank() == 250);
  CHECK(RingSizing(context, token_wise).size(800, no_limit) == RingSize{4, 0.083333, true});  // 40 of 160
}

TEST_CASE("sizing: token-wise, what is computed again takes its time", "[plan][sizing]") {
  PlanningContext context = token_wise_pool();
  context.work = test::with_plain_rings(context.work);
  const RingSizing sizing(context, token_wise);
  // Half of the tokens, eight of ten layers.
  CHECK(sizing.seconds(800, {2, 0.5, true}) == Approx(400 + 0.5 * 0.8 * 0.3 * 400));
  CHECK(sizing.seconds(800, {2, 0.5, false}) == Approx(400));
  CHECK(sizing.size(100, no_limit) == RingSize{1});  // nothing leaves a rank that holds all
}

TEST_CASE("sizing: a ring that must end in time takes no more ranks than that needs, or those with which it ends first",
          "[plan][sizing]") {
  PlanningContext context = small_pool();
  context.ranks = 100;
  context.work.per_token = 1;
  context.work.per_ring_step = 1;
  context.work = test::with_plain_rings(context.work);
  // D ranks take 3600 / D + D - 1 s, which falls up to D = 60 and rises from there on.
  const RingSizing sizing(context, {});
  const auto seconds = [&](std::int64_t degree) { return sizing.seconds(3600, {degree}); };
  const std::int64_t in_time = sizing.narrowest_within(3600, {36}, 150, 100);
  CHECK(seconds(in_time) <= 150);
  CHECK((in_time == 36 || seconds(in_time - 1) > 150));
  const std::int64_t first = sizing.narrowest_within(3600, {36}, 0, 100);
  for (std::int64_t degree = 36; degree <= 100; ++degree) CHECK(seconds(first) <= seconds(degree));
  CHECK(sizing.narrowest_within(3600, {36}, 0, 40) <= 40);
}

TEST_CASE("the balanced share is the work of all sequences over all ranks", "[plan][sizing]") {
  PlanningContext context = small_pool();
  context.work.per_micro_batch = 10;
  // Two ranks x (10 + 75 s), and 50 s with half of a micro-batch's 10 s.
  const Shares shares = balanced_shares(batch_of({150, 50}), context, RingSizing(context, {}));
  CHECK(shares.step == Approx((2 * 85 + 55) / 8.0));
  CHECK(shares.micro_batch == shares.step);  // 200 tokens are less than one micro-batch a rank
}

TEST_CASE("the balanced micro-batch is the step's share over the micro-batches of a rank", "[plan][sizing]") {
  // 3,200 tokens on 8 ranks of 100: four micro-batches of 100 s.
  const PlanningContext context = small_pool();
  const Shares shares = balanced_shares(batch_of({800, 800, 800, 800}), context, RingSizing(context, {}));
  CHECK(shares.step == Approx(400));
  CHECK(shares.micro_batch == Approx(100));
}

}  // namespace hdpsim
