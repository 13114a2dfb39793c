#include "sim/trace/length_distribution.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "sim/base/diagnostic.h"
#include "sim/trace/impl/lognormal.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

constexpr int grid_points = 200'000;

/// The mean of f(length) over the distribution, by the midpoint rule on its quantiles: no sampling error.
template <class Value>
double mean_of(const LengthDistribution& lengths, Value value) {
  double sum = 0;
  for (int i = 0; i < grid_points; ++i) sum += value(lengths.quantile((i + 0.5) / grid_points));
  return sum / grid_points;
}

double share_up_to(const LengthDistribution& lengths, std::int64_t limit) {
  return mean_of(lengths, [&](std::int64_t tokens) { return tokens <= limit ? 1.0 : 0.0; });
}

std::string complaint(const auto& parameters) {
  try {
    static_cast<void>(make_distribution(parameters));
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

void check_never_falls(const LengthDistribution& lengths, std::int64_t min, std::int64_t max) {
  CHECK(lengths.quantile(0) >= min);
  CHECK(lengths.quantile(1) == max);
  for (int i = 0; i < 10'000; ++i) REQUIRE(lengths.quantile(i / 10'000.0) <= lengths.quantile((i + 1) / 10'000.0));
}

}  // namespace

TEST_CASE("the normal quantile is the inverse of the cumulative distribution", "[trace]") {
  for (const double p : {1e-15, 1e-9, 1e-4, 0.01, 0.07, 0.0751, 0.3, 0.5, 0.7, 0.92, 0.93, 0.999}) {
    CAPTURE(p);
    CHECK(normal_cdf(normal_quantile(p)) == Approx(p).epsilon(1e-12));
  }
  CHECK(normal_quantile(0.5) == 0);
  // Phi(1) = 0.8413447460685429 (Abramowitz and Stegun, table 26.1)
  CHECK(normal_quantile(0.8413447460685429) == Approx(1).epsilon(1e-14));
}

TEST_CASE("a lognormal has the median exp(mu) and the mean exp(mu + sigma^2/2)", "[trace]") {
  const auto lengths = make_distribution(Lognormal{.mu = 7, .sigma = 0.8});
  CHECK(std::abs(static_cast<double>(lengths->quantile(0.5)) - std::exp(7.0)) <= 0.5);
  CHECK(std::abs(static_cast<double>(lengths->quantile(0.8413447460685429)) - std::exp(7.8)) <= 0.5);
  const double mean = mean_of(*lengths, [](std::int64_t tokens) { return static_cast<double>(tokens); });
  CHECK(mean == Approx(std::exp(7 + 0.32)).epsilon(1e-3));  // the grid ends at 4.6 sigma
}

TEST_CASE("a lognormal stays within its bounds and is conditioned on them, not clamped to them", "[trace]") {
  const auto lengths = make_distribution(Lognormal{.mu = 7, .sigma = 1, .min = 1000, .max = 1200});
  check_never_falls(*lengths, 1000, 1200);
  // 201 lengths share everything; clamped ends would hold more than a tenth each.
  CHECK(share_up_to(*lengths, 1000) < 2.0 / 201);
  CHECK(1 - share_up_to(*lengths, 1199) < 2.0 / 201);
}

TEST_CASE("a Pareto tail falls by 2^-alpha an octave and holds the share that it is given", "[trace]") {
  const LognormalPareto parameters{
      .mu = 6, .sigma = 1.2, .tail_from = 10'000, .alpha = 1.5, .min = 1, .max = longest_length, .tail_share = 0.1};
  const auto lengths = make_distribution(parameters);
  check_never_falls(*lengths, 1, longest_length);
  CHECK(share_up_to(*lengths, 10'000) == Approx(0.9).margin(1.0 / 10'000));  // one length of rounding
  const double above = 1 - share_up_to(*lengths, 20'000);
  CHECK(above == Approx(0.1 * std::pow(2, -1.5)).margin(1e-4));
  CHECK(1 - share_up_to(*lengths, 40'000) == Approx(0.1 * std::pow(4, -1.5)).margin(1e-4));
}

TEST_CASE("a tail without a share of its own takes that of the lognormal", "[trace]") {
  // tail_from one sigma above the median: 1 - Phi(1) = 0.1587 of the documents.
  const auto tail_from = static_cast<std::int64_t>(std::exp(6.0 + 1.2));
  const LognormalPareto parameters{.mu = 6, .sigma = 1.2, .tail_from = tail_from, .alpha = 2, .max = 1 << 20};
  CHECK(1 - share_up_to(*make_distribution(parameters), tail_from) == Approx(1 - 0.8413447).margin(1e-3));
  CHECK(tail_share(parameters) == Approx(1 - 0.8413447).margin(1e-3));
}

TEST_CASE("the means above a length of lognormal and Pareto are the integrals of their quantiles", "[trace]") {
  const auto integral = [](const auto& distribution, double above) {
    double sum = 0;
    for (int i = 0; i < grid_points; ++i) {
      const double x = distribution.quantile((i + 0.5) / grid_points);
      if (x > above) sum += x;
    }
    return sum / grid_points;
  };
  const LognormalRange body(6, 1, 100, 5000);
  const TruncatedPareto tail(1.3, 1000, 50'000);
  const TruncatedPareto harmonic(1, 1000, 50'000);
  const TruncatedPareto steep(90, 1e6, 2e6);  // 1e6^90 is beyond a double
  CHECK(steep.mean_above(0) == Approx(integral(steep, 0)).epsilon(1e-3));
  for (const double above : {0.0, 1500.0, 4000.0}) {
    CAPTURE(above);
    CHECK(body.mean_above(above) == Approx(integral(body, above)).epsilon(1e-3));
    CHECK(tail.mean_above(above) == Approx(integral(tail, above)).epsilon(1e-3));
    CHECK(harmonic.mean_above(above) == Approx(integral(harmonic, above)).epsilon(1e-3));
    CHECK(body.cdf(body.quantile(0.3)) == Approx(0.3));
    CHECK(tail.cdf(tail.quantile(0.3)) == Approx(0.3));
  }
}

TEST_CASE("lengths are log-uniform inside a bin: every octave of it has the same share", "[trace]") {
  const auto lengths = make_distribution(std::vector<LengthBin>{{1024, 8191, 3}, {10'000, 10'000, 1}});
  check_never_falls(*lengths, 1024, 10'000);
  // [1024, 8192) is three octaves that hold 3 of 4 documents, one each.
  CHECK(share_up_to(*lengths, 2047) == Approx(0.25).margin(1e-5));
  CHECK(share_up_to(*lengths, 4095) == Approx(0.50).margin(1e-5));
  CHECK(share_up_to(*lengths, 9999) == Approx(0.75).margin(1e-5));
}

TEST_CASE("a bin without weight is never drawn", "[trace]") {
  const auto lengths = make_distribution(std::vector<LengthBin>{{1, 1, 0}, {2, 2, 1}, {3, 3, 0}, {4, 4, 1}, {5, 5, 0}});
  CHECK(lengths->quantile(0) == 2);
  CHECK(lengths->quantile(0.49) == 2);
  CHECK(lengths->quantile(0.5) == 4);
  CHECK(lengths->quantile(1) == 4);
}

TEST_CASE("a quantile table goes through its points and is log-linear between them", "[trace]") {
  const auto lengths = make_distribution(std::vector<QuantilePoint>{{0, 100}, {0.5, 400}, {0.5, 900}, {1, 8100}});
  CHECK(lengths->quantile(0) == 100);
  CHECK(lengths->quantile(0.25) == 200);  // sqrt(100 x 400)
  CHECK(lengths->quantile(0.5) == 900);   // a step: the longer side
  CHECK(lengths->quantile(0.75) == 2700);
  CHECK(lengths->quantile(1) == 8100);
}

TEST_CASE("the classes of a mixture hold the token shares that it is given", "[trace]") {
  const std::vector<TokenShareClass> classes{{1024, 50}, {4096, 30}, {16384, 20}};
  const auto upper = make_distribution(TokenShareMixture{classes, ClassEdges::upper, 100});
  const auto lower = make_distribution(TokenShareMixture{classes, ClassEdges::lower, 100});
  const auto token_share = [](const LengthDistribution& lengths, std::int64_t above) {
    const auto tokens = [](std::int64_t t) { return static_cast<double>(t); };
    return mean_of(lengths, [&](std::int64_t t) { return t > above ? tokens(t) : 0; }) / mean_of(lengths, tokens);
  };
  // A grid of 200,000 documents of which the longest hold 16384 / (200,000 x 600) = 0.014 % of the tokens each.
  check_never_falls(*upper, 100, 16384);
  CHECK(token_share(*upper, 1024) == Approx(0.5).margin(1e-3));
  CHECK(token_share(*upper, 4096) == Approx(0.2).margin(1e-3));
  check_never_falls(*lower, 100, 32768);
  CHECK(token_share(*lower, 4096) == Approx(0.5).margin(1e-3));
  CHECK(token_share(*lower, 16384) == Approx(0.2).margin(1e-3));
}

TEST_CASE("a draw is the quantile of the next uniform number of the stream", "[trace]") {
  const auto lengths = make_distribution(std::vector<LengthBin>{{1, 1000, 1}});
  RandomStream drawn(5, "test");
  RandomStream numbers(5, "test");
  for (int i = 0; i < 100; ++i) CHECK(lengths->draw(drawn) == lengths->quantile(numbers.uniform()));
}

TEST_CASE("every wrong parameter of a distribution is told by its name", "[trace]") {
  CHECK(complaint(Lognormal{.mu = 6, .sigma = 0, .min = 0, .max = longest_length + 1}) ==
        "error: sigma 0 is not within (0, 20]\n"
        "error: min 0 is below 1 token\n"
        "error: max 1099511627777 is above 2^40 tokens\n");
  CHECK(complaint(Lognormal{.mu = 50, .sigma = 1, .min = 1, .max = 4096}) ==
        "error: no length from 1 to 4096 is likely with mu 50 and sigma 1\n"
        "        mu is the mean of ln(tokens): 6.2 for a median of 500\n");
  CHECK(complaint(Lognormal{.mu = 6, .sigma = 1, .min = 10, .max = 9}) == "error: max 9 is below min 10\n");
  CHECK(complaint(LognormalPareto{
            .mu = 6, .sigma = 1, .tail_from = 1, .alpha = -1, .min = 1, .max = 9000, .tail_share = 1.5}) ==
        "error: alpha -1 is not within (0, 100]\n"
        "error: tail_from 1 is not between min 1 and max 9000\n"
        "error: tail_share 1.5 is not between 0 and 1\n");
  CHECK(complaint(std::vector<LengthBin>{{1, 10, 1}, {10, 20, -1}}) ==
        "error: the bin [10, 20] begins at or below 10, where the bin before it ends\n"
        "error: the bin [10, 20] has the weight -1\n");
  CHECK(complaint(std::vector<LengthBin>{}) == "error: the histogram holds no documents\n");
  CHECK(complaint(std::vector<QuantilePoint>{{0.1, 5}, {1, 4}}) ==
        "error: a quantile table begins at quantile 0 and ends at quantile 1\n"
        "error: length 4 at quantile 1 is below 5 at quantile 0.1\n");
  CHECK(complaint(TokenShareMixture{{{2048, 1}, {1024, -1}}, ClassEdges::upper, 4}) ==
        "error: lowest 4 is below 16 tokens\n"
        "error: the class edge 1024 is not above 2048 and at most 2^39\n"
        "error: the class 1024 has the token share -1\n");
}

}  // namespace hdpsim
