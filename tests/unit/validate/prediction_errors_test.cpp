#include "sim/validate/prediction_errors.h"

#include <cmath>

#include "sim/validate/trust_format.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

const RunKind dense{Workload::dense, "nvidia", "H100-80GB"};
const RunKind experts{Workload::experts, "nvidia", "H100-80GB"};

/// A step that was published as `published` and predicted as 1 s.
ValidationRow step(const std::string& set, double published, const RunKind& kind = dense, const std::string& job = "") {
  return {.set = set,
          .case_name = "a case",
          .quantity = "step_time_s",
          .unit = "s",
          .published = published,
          .predicted = 1,
          .source = "a paper",
          .job = job,
          .run = kind,
          .memory_use = 0.5};
}

std::vector<double> errors_of(ErrorOf figure, const std::vector<ValidationRow>& rows) {
  std::vector<double> found;
  for (const PredictionError& error : prediction_errors(rows)) {
    if (error.of == figure) found.push_back(error.error);
  }
  return found;
}

TEST_CASE("an error above 0 is a published step that is longer than predicted, of times and of rates", "[trust]") {
  ValidationRow rate = step("a", 0.5);
  rate.quantity = "tokens_per_s_per_gpu";
  const std::vector<double> errors = errors_of(ErrorOf::step_time, {step("a", 2), rate});
  REQUIRE(errors.size() == 2);
  CHECK(errors[0] == Approx(std::log(2)));
  CHECK(errors[1] == Approx(std::log(2)));
}

TEST_CASE("what was fitted or not predicted has no error", "[trust]") {
  ValidationRow fitted = step("a", 2);
  fitted.fitted = true;
  ValidationRow missing = step("a", 2);
  missing.predicted.reset();
  CHECK(prediction_errors({fitted, missing}).empty());
}

TEST_CASE("the ratio of two plans of one job has the difference of their errors", "[trust]") {
  const std::vector<ValidationRow> rows = {step("a", 1.2, dense, "x"), step("a", 1.5, dense, "x"),
                                           step("a", 9, dense, "y"), step("a", 9, experts, "x"),
                                           step("b", 9, dense, "x")};
  const std::vector<double> errors = errors_of(ErrorOf::speedup, rows);
  REQUIRE(errors.size() == 1);  // neither another job, nor another kind of run, nor another set
  CHECK(errors[0] == Approx(std::log(1.2 / 1.5)));
  ValidationRow stated = step("a", 2);
  stated.quantity = "speedup hdp-naive";
  CHECK(errors_of(ErrorOf::speedup, {stated}) == std::vector<double>{std::log(2.0)});
  stated.over_study = true;  // over the same plan elsewhere
  CHECK(errors_of(ErrorOf::speedup, {stated}).empty());
  CHECK(errors_of(ErrorOf::step_time, {stated}).empty());
}

TEST_CASE("runs that ran say of memory what they contradict, unless their set publishes it", "[trust]") {
  ValidationRow full = step("a", 1);
  full.memory_use = 1.25;
  CHECK(errors_of(ErrorOf::memory, {step("a", 1), step("b", 1)}).empty());
  const std::vector<double> errors = errors_of(ErrorOf::memory, {step("a", 1), full, step("b", 1)});
  REQUIRE(errors.size() == 1);
  CHECK(errors[0] == Approx(-std::log(1.25)));
  ValidationRow memory = step("a", 0.9);
  memory.quantity = "memory_gb";
  CHECK(errors_of(ErrorOf::memory, {full, memory}) == std::vector<double>{std::log(0.9)});
}

TEST_CASE("sums have a row a set and kind; a set that is left out is checked against the others", "[trust]") {
  // Three sets that agree, and one far away, which the others do not cover.
  std::vector<ValidationRow> rows;
  for (const char* set : {"a", "b", "c"}) {
    for (const double published : {1.0, 1.01, 1.02}) rows.push_back(step(set, published));
  }
  rows.push_back(step("far", 50));
  const std::vector<PredictionError> errors = prediction_errors(rows);
  CHECK(summed_up(errors).rows().size() == 4);
  const std::vector<KindTrust> kinds = trust_by_kind(errors);
  REQUIRE(kinds.size() == 1);
  CHECK(kinds[0].sets == 4);
  CHECK(kinds[0].figures == 10);
  CHECK(kinds[0].covered == Approx(0.75));
  CHECK(covered_share(ErrorOf::step_time, errors) == Approx(0.75));
  CHECK(kinds[0].range.most > 1.02);
  CHECK(covered_share(ErrorOf::step_time, errors, LeftOut::device) == 0);  // nothing is left that says anything
}

TEST_CASE("the run that is least likely to fit is found by the errors of other sets", "[trust]") {
  std::vector<ValidationRow> rows;
  for (const char* set : {"a", "b", "c"}) {
    rows.push_back(step(set, 1));
    rows.back().quantity = "memory_gb";
  }
  rows.push_back(step("full", 1));
  rows.back().memory_use = 1.2;
  const UnlikelyRun least = least_likely_run(rows);
  CHECK(least.set == "full");
  CHECK(least.fits < 0.5);
  CHECK(least.fits > 0);
}

TEST_CASE("a summary has a line a kind of run, and says how many kept-out figures lie within", "[trust]") {
  const std::vector<ValidationRow> rows = {step("a", 1), step("b", 1.1), step("c", 1, experts)};
  const std::string text = trust_formatted(rows, Format::table);
  CHECK_THAT(text, Catch::Matchers::Contains("dense, nvidia, H100-80GB"));
  CHECK_THAT(text, Catch::Matchers::Contains("step_time: "));
  CHECK_THAT(trust_formatted(rows, Format::csv),
             Catch::Matchers::StartsWith("figure,kind,sets,figures,least,most,covered"));
}

}  // namespace
}  // namespace hdpsim
