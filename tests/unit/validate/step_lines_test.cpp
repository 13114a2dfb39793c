#include "sim/validate/step_lines.h"

#include "sim/validate/validation_summary.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

// Steps of a micro-batch's time a and a rest of c.
std::vector<StepOfPlan> steps(double a, double c, const std::vector<double>& micro_batches) {
  std::vector<StepOfPlan> all;
  for (const double m : micro_batches) all.push_back({m, a * m + c});
  return all;
}

TEST_CASE("the line through steps gives back the micro-batch and the rest of which they are made", "[validation]") {
  for (const std::vector<double>& m : {std::vector<double>{1, 2}, {4, 8, 32}, {1, 1, 1024}}) {
    const auto line = line_through(steps(0.25, 0.1, m));
    REQUIRE(line);
    CHECK(line->per_micro_batch == Approx(0.25));
    CHECK(line->fixed == Approx(0.1));
    CHECK(line->rest() == Approx(0.4));
  }
}

TEST_CASE("steps of one number of micro-batches have no line", "[validation]") {
  CHECK_FALSE(line_through({}));
  CHECK_FALSE(line_through({{4, 1.1}}));
  CHECK_FALSE(line_through({{4, 1.1}, {4, 1.2}}));
}

TEST_CASE("a line weighs relative errors: a short step counts as much as a long one", "[validation]") {
  // Of a proportional law, steps that are 10 % too long at m = 1 and 10 % too short at m = 1000: no line through three
  // points meets them all, and the residuals of the outer two are of one size.
  const auto line = line_through({{1, 1.1}, {2, 2}, {1000, 900}});
  REQUIRE(line);
  const auto residual = [&](double m, double t) { return (line->per_micro_batch * m + line->fixed) / t - 1; };
  const double first = residual(1, 1.1);
  const double second = residual(2, 2);
  const double last = residual(1000, 900);
  // Normal equations: the residuals are orthogonal to m / T and to 1 / T.
  CHECK(first / 1.1 + second * 2 / 2 + last * 1000 / 900 == Approx(0).margin(1e-9));
  CHECK(first / 1.1 + second / 2 + last / 900 == Approx(0).margin(1e-9));
}

TEST_CASE("errors of lines are medians over plans, and plans without a rising line are left out", "[validation]") {
  // Micro-batches 10 % too short with twice the rest; 30 % too short; exact.
  const std::vector<double> m = {1, 2, 4};
  const StepsOfPlan short_ones{steps(1, 0.2, m), steps(0.9, 0.36, m)};
  const StepsOfPlan shorter{steps(1, 0.2, m), steps(0.7, 0.35, m)};
  const StepsOfPlan exact{steps(2, 0.6, m), steps(2, 0.6, m)};
  const StepsOfPlan falling{steps(1, 0.2, m), steps(-0.1, 2, m)};
  const StepsOfPlan one_step{steps(1, 0.2, {4}), steps(1, 0.2, {4})};
  const auto errors = line_errors({short_ones, falling, shorter, one_step, exact});
  REQUIRE(errors);
  CHECK(errors->plans == 3);
  CHECK(errors->micro_batch_error == Approx(-0.1));
  CHECK(errors->published_rest == Approx(0.2));  // of 0.2, 0.2 and 0.3
  CHECK(errors->predicted_rest == Approx(0.4));  // of 0.4, 0.5 and 0.3
  CHECK_FALSE(line_errors({falling, one_step}));
}

TEST_CASE("rows of one plan make a line of a set's step times, fitted ones and other quantities do not",
          "[validation]") {
  const auto row = [](const std::string& line, double micro_batches, double published, double predicted) {
    return ValidationRow{.set = "a",
                         .case_name = {},
                         .quantity = "step_time_s",
                         .unit = "s",
                         .published = published,
                         .predicted = predicted,
                         .source = {},
                         .line = line,
                         .micro_batches = micro_batches};
  };
  // Published 1 s a micro-batch and 1 s besides; predicted 0.8 s and 0.4 s.
  std::vector<ValidationRow> rows = {row("tp 1", 1, 2, 1.2), row("tp 1", 3, 4, 2.8), row("tp 2", 1, 7, 7)};
  const auto lines = summarize(rows).at(0).lines;
  REQUIRE(lines);
  CHECK(lines->plans == 1);
  CHECK(lines->micro_batch_error == Approx(-0.2));
  CHECK(lines->published_rest == Approx(1));
  CHECK(lines->predicted_rest == Approx(0.5));
  rows[0].fitted = true;
  CHECK_FALSE(summarize(rows).at(0).lines);
  rows[0].fitted = false;
  for (ValidationRow& each : rows) each.quantity = "memory_gb";
  CHECK_FALSE(summarize(rows).at(0).lines);
}

}  // namespace
}  // namespace hdpsim
