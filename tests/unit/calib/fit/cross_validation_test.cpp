#include "calib/fit/impl/cross_validation.h"

#include <algorithm>

#include "calib/fit/impl/linear_fits.h"
#include "tests/unit/calib/fit/fit_support.h"

namespace hdpsim::calib {
namespace {

TEST_CASE("no sample is predicted by a fit that has seen it, and each is predicted once", "[fit]") {
  for (const std::size_t samples : {1, 7, 20, 21, 95}) {
    CAPTURE(samples);
    std::vector<int> asked_for(samples, 0);
    const auto predict = [&](const Indices& known, const Indices& asked) {
      if (known.size() < samples) {
        REQUIRE(known.size() + asked.size() == samples);
        for (const std::size_t i : asked) {
          ++asked_for[i];
          REQUIRE(std::find(known.begin(), known.end(), i) == known.end());
        }
      }
      return std::vector<double>(asked.size(), 1);
    };
    (void)predictions_of({"", predict}, samples, all_indices(samples), 1);
    CHECK(std::all_of(asked_for.begin(), asked_for.end(), [](int times) { return times == 1; }));
  }
}

TEST_CASE("the ends of a range of sizes stay known", "[fit]") {
  CHECK(inner_indices(5) == Indices{1, 2, 3});
  CHECK(inner_indices(3) == Indices{0, 1, 2});
}

CandidateFit polynomial(const std::vector<double>& x, const std::vector<double>& seconds, int terms) {
  return {"", [=](const Indices& known, const Indices& asked) {
            const auto features = [&](std::size_t i) {
              std::vector<double> powers = {1};
              while (std::ssize(powers) < terms) powers.push_back(powers.back() * x[i]);
              return powers;
            };
            Equations equations{{}, selected(seconds, known)};
            for (const std::size_t i : known) equations.features.push_back(features(i));
            const auto coefficients = relative_least_squares(equations);
            std::vector<double> predictions;
            for (const std::size_t i : asked) predictions.push_back(evaluate(coefficients, features(i)));
            return predictions;
          }};
}

TEST_CASE("the form of the law is chosen, not the richest that fits it as well", "[fit]") {
  std::vector<double> x;
  std::vector<double> seconds;
  testing::Measured measured(0.01);
  for (int i = 1; i <= 24; ++i) {
    x.push_back(i);
    seconds.push_back(measured(2.0 + 3.0 * i).median_s);
  }
  std::vector<CandidateFit> candidates;
  for (const int terms : {1, 2, 3, 4}) candidates.push_back(polynomial(x, seconds, terms));
  const Indices all = all_indices(x.size());
  const Choice choice = choose(candidates, seconds, all, 1);
  CHECK(choice.candidate == 1);
  const FitQuality found = quality(choice.predictions, seconds, all);
  CHECK(found.samples == 24);
  CHECK(found.held_out.mean >= found.in_sample.mean);
  CHECK(found.held_out.mean <= 2 * testing::mean_of_normal * 0.01);
  CHECK(found.held_out.p95 <= found.held_out.max);
  REQUIRE(found.residual_deciles.size() == 11);
  CHECK(std::is_sorted(found.residual_deciles.begin(), found.residual_deciles.end()));
}

TEST_CASE("the same seed deals the same folds", "[fit]") {
  const std::vector<double> seconds(40, 1.0);
  const auto first_asked = [](std::uint64_t seed) {
    Indices seen;
    const auto predict = [&](const Indices&, const Indices& asked) {
      seen.insert(seen.end(), asked.begin(), asked.end());
      return std::vector<double>(asked.size(), 1);
    };
    (void)predictions_of({"", predict}, 40, all_indices(40), seed);
    return seen;
  };
  CHECK(first_asked(1) == first_asked(1));
  CHECK(first_asked(1) != first_asked(2));
}

}  // namespace
}  // namespace hdpsim::calib
