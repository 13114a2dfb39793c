#include "sim/fit/impl/posterior.h"

#include <cmath>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

using Rows = std::vector<std::vector<double>>;

// Two coordinates that are known to 1, and rows with a noise of 1.
Posterior two_unknowns() {
  return Posterior({{1, 0}, {0, 1}}, 1);
}

TEST_CASE("a further row adds its information to what is known: precisions add", "[fit]") {
  // Precisions: 1 / 4 before, and 3^2 / 0.5 of the row.
  CHECK(Posterior({{4}}, 0.5).with_row({3}).deviation(0) == Approx(1 / std::sqrt(0.25 + 18)));
  // The row sees the sum of two coordinates: precision {{2, 1}, {1, 2}}, covariance {{2, -1}, {-1, 2}} / 3.
  const Posterior sum = two_unknowns().with_row({1, 1});
  CHECK(sum.deviation(0) == Approx(std::sqrt(2.0 / 3)));
  CHECK(sum.deviation_along({1, 1}) == Approx(std::sqrt(2.0 / 3)));
  CHECK(sum.deviation_along({1, -1}) == Approx(std::sqrt(2)));  // what the row does not see stays as it was
}

TEST_CASE("a row is foretold as a fit with this row finds it", "[fit]") {
  // Rows of a line through coordinates with slopes of their own; residuals of nothing, so that the scale stays.
  const std::vector<FitCoordinate> coordinates = {{.start = 0, .width = 0.5, .least = -9, .most = 9},
                                                  {.start = 0, .width = 2, .least = -9, .most = 9}};
  const Rows rows = {{1, 0.2}, {0.7, 0}, {0.9, 0.1}, {0.3, 1}};
  const auto fitted = [&](std::size_t count) {
    return robust_fit(
        [&](const std::vector<double>& x) {
          std::vector<double> residuals;
          for (std::size_t i = 0; i < count; ++i) residuals.push_back(rows[i][0] * x[0] + rows[i][1] * x[1]);
          return residuals;
        },
        coordinates);
  };
  const RobustFit before = fitted(3);
  const RobustFit after = fitted(4);
  const Posterior foretold = Posterior(before).with_row(rows[3]);
  // The same slopes; only the scale, which the fourth row changes, differs, and a deviation lies between that of
  // either.
  const double scales = after.scale / before.scale;
  for (std::size_t i = 0; i < 2; ++i) {
    CAPTURE(i, scales);
    const double ratio = after.deviations[i] / foretold.deviation(i);
    CHECK(ratio >= std::min(1.0, scales) - 1e-9);
    CHECK(ratio <= std::max(1.0, scales) + 1e-9);
    CHECK(after.deviations[i] < before.deviations[i]);
  }
}

TEST_CASE("the second run is the best beside the first, not the second best alone", "[fit]") {
  const Rows rows = {{1, 0}, {1.1, 0}, {0, 1}, {0, 0}};
  const std::vector<double> asked = {1, 1};
  const NextRows next = choose_next_rows(two_unknowns(), rows,
                                         [&](const Posterior& posterior) { return posterior.deviation_along(asked); });
  CHECK(next.now == Approx(std::sqrt(2)));
  CHECK(next.after_each[0] == Approx(std::sqrt(1.0 / 2 + 1)));
  CHECK(next.after_each[3] == Approx(next.now));
  CHECK(next.order == std::vector<std::size_t>{1, 0, 2, 3});
  // The first coordinate then has a variance of 1 / 2.21; the second one still has 1, of which a row leaves a half.
  CHECK(next.chosen == std::vector<std::size_t>{1, 2});
  CHECK(next.after[0] == Approx(std::sqrt(1 / 2.21 + 1)));
  CHECK(next.after[1] == Approx(std::sqrt(1 / 2.21 + 0.5)));
}

TEST_CASE("one candidate is one choice", "[fit]") {
  const NextRows next =
      choose_next_rows(two_unknowns(), {{1, 0}}, [](const Posterior& posterior) { return posterior.deviation(0); });
  CHECK(next.chosen == std::vector<std::size_t>{0});
  CHECK(next.after == std::vector<double>{std::sqrt(0.5)});
}

TEST_CASE("slopes of residuals are those of the fit, at its place", "[fit]") {
  const std::vector<FitCoordinate> coordinates = {{.start = 0, .width = 1, .least = -1, .most = 1},
                                                  {.start = 0, .width = 1, .least = -1, .most = 1}};
  const auto residuals = [](const std::vector<double>& x) { return std::vector<double>{2 * x[0] - x[1], 3 * x[1]}; };
  const Rows slopes = residual_slopes(residuals, coordinates, {0.5, 1});  // the second at the end of its range
  CHECK(slopes[0][0] == Approx(2));
  CHECK(slopes[0][1] == Approx(-1));
  CHECK(slopes[1][0] == Approx(0).margin(1e-12));
  CHECK(slopes[1][1] == Approx(3));
}

}  // namespace
}  // namespace hdpsim
