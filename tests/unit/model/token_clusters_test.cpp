#include "sim/model/token_clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

constexpr std::int64_t width = 48;

TokenVectors drawn(double similarity, std::int64_t alike = 16) {
  return similar_tokens({.similarity = similarity, .alike = alike, .sets = 20, .width = width});
}

double rate(const TokenVectors& tokens, std::int64_t hashes, std::int64_t columns = width) {
  return clusters_of(tokens, CrossPolytopeHashes(tokens.width, hashes, columns)).rate();
}

double product(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

double cosine(std::span<const double> a, std::span<const double> b) {
  return product(a, b) / std::sqrt(product(a, a) * product(b, b));
}

TEST_CASE("drawn vectors have the cosine that is asked for, and none with those of other sets", "[clusters]") {
  for (const double similarity : {0.0, 0.5, 0.9, 1.0}) {
    CAPTURE(similarity);
    const TokenVectors tokens = drawn(similarity, 2);
    double inside = 0;
    double outside = 0;
    for (std::int64_t set = 0; set < 20; ++set) {
      inside += cosine(tokens.of(2 * set), tokens.of(2 * set + 1)) / 20;
      outside += cosine(tokens.of(2 * set), tokens.of((2 * set + 2) % 40)) / 20;
    }
    // A cosine of independent vectors deviates by 1 / sqrt(width), and the mean of twenty by a fifth of that: 0.03.
    CHECK(inside == Approx(similarity).margin(0.1));
    CHECK(outside == Approx(0).margin(0.1));
  }
}

TEST_CASE("equal vectors are one cluster, whatever their length, and opposite ones are not", "[clusters]") {
  CHECK(rate(drawn(1, 16), 6) == 1.0 / 16);
  const CrossPolytopeHashes hashes(3, 4, 3);
  const std::vector<double> vector = {1, -2, 0.5};
  const std::vector<double> longer = {2, -4, 1};
  const std::vector<double> opposite = {-1, 2, -0.5};
  CHECK(hashes.key(vector) == hashes.key(longer));
  std::vector<std::int32_t> negative = hashes.key(vector);
  for (std::int32_t& place : negative) place = -place;
  CHECK(hashes.key(opposite) == negative);
}

TEST_CASE("a hash is the largest component among the columns that it looks at, in a turned vector", "[clusters]") {
  // Of 32 columns, all components of a turned unit vector are largest for some vector, with either sign.
  const CrossPolytopeHashes hashes(32, 1, 32);
  std::set<std::int32_t> seen;
  const TokenVectors tokens = similar_tokens({.similarity = 0, .alike = 2, .sets = 1000, .width = 32});
  for (std::int64_t token = 0; token < tokens.count(); ++token) seen.insert(hashes.key(tokens.of(token)).at(0));
  CHECK(seen.size() == 64);
  const CrossPolytopeHashes narrow(32, 1, 4);
  for (std::int64_t token = 0; token < tokens.count(); ++token) {
    const std::int32_t place = narrow.key(tokens.of(token)).at(0);
    CHECK((place != 0 && std::abs(place) <= 4));
  }
}

TEST_CASE("more hashes make more clusters, and tokens that are more alike fewer", "[clusters]") {
  for (const double similarity : {0.8, 0.9, 0.97}) {
    double before = 0;
    for (const std::int64_t hashes : {1, 2, 4, 6, 8, 10}) {
      const double now = rate(drawn(similarity), hashes);
      CHECK(now >= before);  // the first hashes are the same: more of them only divide clusters
      before = now;
    }
    CHECK(before > rate(drawn(similarity), 1));
  }
  double before = 1;
  for (const double similarity : {0.8, 0.9, 0.97, 0.995, 1.0}) {
    const double now = rate(drawn(similarity), 6);
    CHECK(now < before);
    before = now;
  }
  // Fewer columns tell fewer vectors apart.
  CHECK(rate(drawn(0.9), 6, 4) < rate(drawn(0.9), 6, width));
}

TEST_CASE("experts that change nothing give every token back", "[clusters]") {
  const TokenVectors tokens = drawn(0.95);
  const TokenClusters clusters = clusters_of(tokens, CrossPolytopeHashes(width, 4, width));
  REQUIRE(clusters.rate() < 1);
  REQUIRE(std::accumulate(clusters.sizes.begin(), clusters.sizes.end(), std::int64_t{0}) == tokens.count());
  const TokenVectors means = means_of(tokens, clusters);
  const TokenVectors left = differences(tokens, means, clusters);
  const TokenVectors back = restored(means, left, clusters);
  for (std::size_t i = 0; i < tokens.values.size(); ++i) {
    CHECK(std::abs(back.values[i] - tokens.values[i]) <= 4e-16);  // values below 2, two roundings
  }
  // What is left of a cluster adds up to nothing.
  for (const double sum : sums_of(left, clusters).values) CHECK(std::abs(sum) < 1e-13);
}

// Experts that scale by columns: y = E c + (x - c). The gradient of sum(w y) by central differences, exact for a linear
// function but for rounding.
TEST_CASE("gradients are those of what tokens pass through", "[clusters]") {
  const TokenVectors tokens = drawn(0.95, 4);
  const TokenClusters clusters = clusters_of(tokens, CrossPolytopeHashes(width, 2, width));
  REQUIRE(clusters.rate() < 1);
  const TokenVectors weights = similar_tokens({.similarity = 0, .alike = 4, .sets = 20, .width = width}, 7);
  const auto scaled = [](TokenVectors vectors) {
    for (std::size_t i = 0; i < vectors.values.size(); ++i) vectors.values[i] *= static_cast<double>(i % width) / 10;
    return vectors;
  };
  const auto loss = [&](const TokenVectors& x) {
    const TokenVectors means = means_of(x, clusters);
    const TokenVectors y = restored(scaled(means), differences(x, means, clusters), clusters);
    return product(y.values, weights.values);
  };
  const TokenVectors gradient = restored_gradients(scaled(sums_of(weights, clusters)), weights, clusters);
  for (std::size_t i = 0; i < tokens.values.size(); i += 97) {
    TokenVectors more = tokens;
    TokenVectors less = tokens;
    more.values[i] += 1;
    less.values[i] -= 1;
    CHECK(gradient.values[i] == Approx((loss(more) - loss(less)) / 2).margin(1e-10));
  }
}

TEST_CASE("vectors are read from a file, and each that is wrong is reported", "[clusters]") {
  const test::TemporaryFolder folder;
  const std::string path = (folder.path() / "vectors.json").string();
  const auto problems = [&](const std::string& text) {
    std::ofstream(path) << text;
    Diagnostics diagnostics;
    const auto tokens = load_token_vectors(path, diagnostics);
    CHECK(tokens.has_value() == diagnostics.empty());
    std::string found;
    for (const Diagnostic& each : diagnostics.sorted()) {
      found += fmt::format("{}:{}: {}\n", each.position.line, each.position.column, each.message);
    }
    return found;
  };
  CHECK(problems("[[1, 2.5], [-3, 0]]").empty());
  Diagnostics none;
  CHECK(load_token_vectors(path, none)->values == std::vector<double>{1, 2.5, -3, 0});
  CHECK(problems("[[1, 2], [3], [4, x]]") ==
        "1:10: a vector must be a list of 2 numbers, as the first one is\n1:19: \"x\" is not a number\n");
  CHECK(problems("{a: 1}") == "1:1: the vectors must be a list of lists of numbers\n");
}

}  // namespace
}  // namespace hdpsim
