#include "sim/trace/trace_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sim/trace/trace.h"
#include "tests/support/catch.h"
#include "tests/unit/trace/trace_files.h"

namespace hdpsim {
namespace {

const std::filesystem::path traces = std::filesystem::path(HDPSIM_SOURCE_DIR) / "traces";

// In percent, of the classes from 2Ki to 2Mi.
using Shares = std::array<double, 11>;
constexpr Shares github_shares{34.0, 14.2, 10.4, 10.2, 7.6, 7.6, 6.4, 4.5, 2.6, 1.7, 1.0};
constexpr Shares byted_shares{7.6, 7.6, 8.8, 9.5, 10.7, 11.4, 7.3, 9.7, 7.6, 7.6, 12.1};

/// The share of tokens and its standard error. That of a ratio sum(x) / sum(s) with x = s where s is above the edge, by
/// the delta method: the variance is sum((x - p s)^2) / sum(s)^2.
struct SampledShare {
  double share = 0;
  double error = 0;
};

SampledShare token_share_above(const std::vector<std::int64_t>& lengths, std::int64_t above) {
  double all = 0;
  double part = 0;
  for (const std::int64_t tokens : lengths) {
    all += static_cast<double>(tokens);
    if (tokens > above) part += static_cast<double>(tokens);
  }
  const double share = part / all;
  double squares = 0;
  for (const std::int64_t tokens : lengths) {
    squares += std::pow(static_cast<double>(tokens) * ((tokens > above ? 1 : 0) - share), 2);
  }
  return {share, std::sqrt(squares) / all};
}

std::vector<std::int64_t> drawn(const char* preset, ClassEdges edges, std::int64_t count) {
  return tokens_of(*make_drawn_lengths(load_preset(preset, traces, {.edges = edges}), 1, count));
}

Description described(const char* preset, ClassEdges edges = ClassEdges::upper) {
  return describe(*make_drawn_lengths(load_preset(preset, traces, {.edges = edges}), 1, 2'000'000));
}

double share_above(const Description& description, std::int64_t above, double Description::Share::*of) {
  for (const auto& share : description.shares) {
    if (share.above == above) return share.*of;
  }
  FAIL("no share above " << above);
  return 0;
}

}  // namespace

TEST_CASE("the shipped presets are listed, and a misspelt one is told", "[trace]") {
  CHECK(preset_names(traces) ==
        std::vector<std::string>{"byted", "github", "reasoning", "rl-dapo", "web", "wikipedia"});
  const TraceFolder folder;
  CHECK(folder.complaint([&] { return load_preset("gihub", traces); }) ==
        "error: there is no length preset 'gihub'\n        did you mean 'github'?\n");
  CHECK_FALSE(folder.complaint([&] { return load_preset("github", folder.at("nowhere")); }).empty());
}

TEST_CASE("drawn lengths hold the token shares of the file, within five standard errors", "[trace]") {
  for (const auto& [preset, shares] : {std::pair{"github", github_shares}, {"byted", byted_shares}}) {
    const auto lengths = drawn(preset, ClassEdges::upper, 1'000'000);
    double above = std::accumulate(shares.begin(), shares.end(), 0.0);
    const double all = above;
    for (std::size_t i = 0; i + 1 < shares.size(); ++i) {
      above -= shares[i];
      const std::int64_t edge = std::int64_t{2048} << i;
      const SampledShare sampled = token_share_above(lengths, edge);
      CAPTURE(preset, edge, above / all, sampled.share, sampled.error);
      CHECK(std::abs(sampled.share - above / all) < 5 * sampled.error);
    }
  }
}

TEST_CASE("the published shares of tokens and samples of ByteScale hold", "[trace]") {
  // The tolerance is five standard errors of 1,000,000 documents.
  const auto byted = drawn("byted", MixtureOptions{}.edges, 1'000'000);
  const auto github = drawn("github", MixtureOptions{}.edges, 1'000'000);
  const auto check = [](const std::vector<std::int64_t>& lengths, std::int64_t above, double published) {
    const SampledShare sampled = token_share_above(lengths, above);
    CAPTURE(above, published, sampled.share, sampled.error);
    CHECK(std::abs(sampled.share - published) < 5 * sampled.error);
  };
  check(byted, 256 << 10, 0.37);
  check(byted, 128 << 10, 0.443);
  check(byted, 2 << 20, 0.121);
  check(github, 128 << 10, 0.162);
  check(github, 256 << 10, 0.098);
  // Shares of samples, as rounded as they are published; "at most 4K" are the classes 2K and 4K.
  const auto samples_from = [&](std::int64_t least) {
    return static_cast<double>(std::count_if(byted.begin(), byted.end(), [&](auto s) { return s >= least; })) /
           static_cast<double>(byted.size());
  };
  CHECK(1 - samples_from(8 << 10) == Approx(0.80).margin(0.02));
  CHECK(samples_from(128 << 10) == Approx(0.01).margin(0.001));
  CHECK(samples_from(2 << 20) == Approx(0.0005).margin(0.0001));
}

TEST_CASE("the mean length that a token sees is the share-weighted middle of the classes", "[trace]") {
  // In a log-uniform class (a, b) the token-weighted mean is E[s^2] / E[s] = (b^2 - a^2) / 2 / (b - a) = (a + b) / 2.
  double expected = 0;
  double all = 0;
  double lower = 256;
  for (std::size_t i = 0; i < byted_shares.size(); ++i) {
    const double upper = 4096 << i;
    expected += byted_shares[i] * (lower + upper) / 2;
    all += byted_shares[i];
    lower = upper;
  }
  expected /= all;
  double tokens = 0;
  double squares = 0;
  const auto lengths = load_preset("byted", traces);
  constexpr int points = 1'000'000;
  for (int i = 0; i < points; ++i) {
    const auto s = static_cast<double>(lengths->quantile((i + 0.5) / points));
    tokens += s;
    squares += s * s;
  }
  CHECK(squares / tokens == Approx(expected).epsilon(1e-3));
}

TEST_CASE("wikipedia: the shipped table has the percentiles and token shares of its source", "[trace]") {
  // The source: 1,000,000 documents, mean 1,013.6; percentiles and shares of tokens in percent as counted in it.
  const Description d = described("wikipedia");
  CHECK(d.mean == Approx(1013.6).epsilon(0.02));
  const std::pair<double, double> percentiles[] = {{5, 67},    {25, 146},  {50, 347},    {75, 862},
                                                   {90, 2112}, {95, 3721}, {99, 10'921}, {99.9, 37'367}};
  for (const auto& [percent, length] : percentiles) {
    for (const auto& p : d.percentiles) {
      if (p.percent != percent) continue;
      CAPTURE(percent);
      CHECK(static_cast<double>(p.length) == Approx(length).epsilon(0.03).margin(1));
    }
  }
  const std::pair<std::int64_t, double> shares[] = {{4096, 42.99}, {8192, 27.47}, {32'768, 7.55}, {65'536, 3.08}};
  for (const auto& [above, percent] : shares) {
    CAPTURE(above);
    CHECK(100 * share_above(d, above, &Description::Share::tokens) == Approx(percent).margin(0.5));
  }
}

TEST_CASE("web: the shipped table has the shares of documents of its source", "[trace]") {
  // Documents of the source up to an edge, of 13,460,514 in all.
  const std::pair<std::int64_t, double> counted[] = {{4096, 94.37}, {8192, 97.42}, {16'384, 98.71}, {131'072, 99.86}};
  const Description d = described("web");
  for (const auto& [edge, percent] : counted) {
    CAPTURE(edge);
    CHECK(100 * (1 - share_above(d, edge, &Description::Share::sequences)) == Approx(percent).margin(0.1));
  }
  CHECK(d.max <= 196'608);
}

TEST_CASE("reasoning: the shipped table has the mean and the long outputs of its source", "[trace]") {
  const Description d = described("reasoning");
  CHECK(d.mean == Approx(1527).epsilon(0.06));
  CHECK(100 * share_above(d, 8192, &Description::Share::sequences) == Approx(2.6).margin(0.05));
  CHECK(100 * share_above(d, 8192, &Description::Share::tokens) == Approx(21.3).margin(1));
  CHECK(100 * share_above(d, 16'384, &Description::Share::tokens) == Approx(5.4).margin(0.2));
  CHECK(d.max <= 32'768);
}

TEST_CASE("rl-dapo: a lognormal of the published median and the borrowed sigma, cut at the longest answer", "[trace]") {
  constexpr double median = 7730;
  constexpr double sigma = 0.97;
  constexpr double cut = 20'480;
  const auto below = [](double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); };
  const double z = std::log(cut / median) / sigma;
  const auto lengths = load_preset("rl-dapo", traces);
  CHECK(lengths->quantile(0.5) == 7730);
  for (const auto& [u, deviations] : {std::pair{0.15866, -1.0}, {0.02275, -2.0}, {0.84, 0.99446}}) {
    CAPTURE(u);
    CHECK(static_cast<double>(lengths->quantile(u)) == Approx(median * std::exp(sigma * deviations)).epsilon(0.003));
  }
  // What would be longer is as long as the cut, and nothing else is.
  CHECK(lengths->quantile(below(z) + 1e-5) == 20'480);
  CHECK(lengths->quantile(below(z) - 1e-3) < 20'480);
  CHECK(lengths->quantile(1) == 20'480);
  // E[min(X, cut)] = exp(mu + sigma^2 / 2) P(Z < z - sigma) + cut P(Z > z).
  const double mean = median * std::exp(sigma * sigma / 2) * below(z - sigma) + cut * (1 - below(z));
  constexpr int points = 100'000;
  double sum = 0;
  for (int i = 0; i < points; ++i) sum += static_cast<double>(lengths->quantile((i + 0.5) / points));
  CHECK(sum / points == Approx(mean).epsilon(1e-3));
}

}  // namespace hdpsim
