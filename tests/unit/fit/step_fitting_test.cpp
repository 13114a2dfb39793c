#include "sim/fit/step_fitting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/random.h"
#include "sim/fit/fit_report.h"
#include "sim/fit/impl/row_choice.h"
#include "sim/profile/profile_file.h"
#include "sim/validate/step_log.h"
#include "tests/unit/fit/small_steps.h"

namespace hdpsim {
namespace {

using namespace test;

TEST_CASE("intervals contain the parameters that made the steps, nine times of ten", "[fit]") {
  constexpr int cases = 15;
  const ValidationSet set = set_of(small_rows);
  RandomStream random(11, "test.hidden");
  int hits = 0;
  int intervals = 0;
  for (int i = 0; i < cases; ++i) {
    const std::vector<Hidden> hidden = {{"host_issue", std::exp(0.895 * 0.7 * random.normal())},
                                        {"gemm", std::exp(-0.18 * std::abs(random.normal()))}};
    const FitRequest request =
        request_of(measured(set, hidden, 0.02, static_cast<std::uint64_t>(i)), {"host_issue", "gemm"});
    const auto result = fit_to_steps(request);
    REQUIRE(result);
    for (const auto& [name, value] : hidden) {
      const FittedParameter& fitted = parameter_of(*result, name);
      CAPTURE(i, name, value, fitted.value, fitted.p5, fitted.p95);
      ++intervals;
      const bool hit = fitted.p5 <= value && value <= fitted.p95;
      hits += hit ? 1 : 0;
      CHECK((hit || std::abs(std::log(fitted.value / value)) < 0.2));  // a miss is a near one
    }
  }
  // Of 30 intervals of 90 %, 27 +- 1.6 hit.
  CAPTURE(hits);
  CHECK(hits >= 23);
  CHECK(intervals == 30);
}

TEST_CASE("a fit explains steps that differ by its parameters alone, in rows that it has not seen, too", "[fit]") {
  const std::vector<Hidden> hidden = {{"host_issue", 2}, {"gemm", 0.8}, {"per_micro_batch", 0.004}};
  FitRequest request =
      request_of(measured(set_of(small_rows), hidden, 0, 1), {"host_issue", "gemm", "per_micro_batch"});
  request.holdout = 0.25;
  const auto result = fit_to_steps(request);
  REQUIRE(result);
  CHECK(result->before.mean > 0.1);
  CHECK(result->after.mean < 0.01);
  CHECK(result->held_out_after.rows == 2);
  CHECK(result->held_out_after.mean < 0.05);
  CHECK(result->profile.provenance.label == ProfileLabel::fitted);
  CHECK(result->profile.provenance.fit->rows.size() == 6);
  CHECK(fit_to_steps(request)->profile == result->profile);
}

TEST_CASE("a parameter of which the rows say nothing comes back as it was, and is told", "[fit]") {
  const FitRequest request =
      request_of(measured(set_of(small_rows), {{"gemm", 0.9}}, 0.02, 5), {"gemm", "link_between_nodes"});
  const auto result = fit_to_steps(request);
  REQUIRE(result);
  const FittedParameter& unseen = parameter_of(*result, "link_between_nodes");
  CHECK(unseen.value == 1);
  CHECK_FALSE(unseen.determined);
  CHECK(unseen.p5 == Approx(unseen.prior_p5));
  CHECK(parameter_of(*result, "gemm").determined);
}

TEST_CASE("rows to which a profile was fitted do not count when it is validated", "[fit]") {
  FitRequest request = request_of(measured(set_of(small_rows), {{"gemm", 0.9}}, 0.02, 5), {"gemm"});
  request.holdout = 0.5;
  const auto result = fit_to_steps(request);
  REQUIRE(result);
  const StudyFile file(profile_text(result->profile));
  Catalog catalog(HDPSIM_SOURCE_DIR);
  const auto rows = validate(read_validation(request.sets[0].set, request.sets[0].path, catalog,
                                             {.set = {"profile=" + file.path()}, .without = {}}),
                             {});
  REQUIRE(rows);
  const ValidationSummary summary = summarize(*rows).front();
  CHECK(summary.fitted == 4);
  CHECK(summary.predicted == 4);
  CHECK(summary.mean_abs_error == Approx(result->held_out_after.mean));
}

TEST_CASE("sets that are fitted together are as one set, and each validation leaves its own rows out", "[fit]") {
  const ValidationSet all = measured(set_of(small_rows), {{"gemm", 0.9}}, 0.02, 5);
  FitRequest alone = request_of(all, {"gemm"});
  alone.holdout = 0.5;
  FitRequest together = alone;
  together.sets.push_back(together.sets.front());
  std::vector<ValidationCase>& first = together.sets[0].set.cases;
  std::vector<ValidationCase>& second = together.sets[1].set.cases;
  first.erase(first.begin() + 3, first.end());
  second.erase(second.begin(), second.begin() + 3);
  together.sets[1].set.name = "others";
  const auto of_one = fit_to_steps(alone);
  const auto of_two = fit_to_steps(together);
  REQUIRE(of_one);
  REQUIRE(of_two);
  // The rows held out are the same, as they are counted through all sets.
  CHECK(of_two->profile.provenance.fit->parameters == of_one->profile.provenance.fit->parameters);
  CHECK(of_two->profile.provenance.fit->set == "steps, others");
  REQUIRE(of_two->rows.size() == 8);
  std::int64_t fitted = 0;
  std::int64_t predicted = 0;
  const StudyFile file(profile_text(of_two->profile));
  for (const FitSource& source : together.sets) {
    Catalog catalog(HDPSIM_SOURCE_DIR);
    const auto rows = validate(
        read_validation(source.set, source.path, catalog, {.set = {"profile=" + file.path()}, .without = {}}), {});
    REQUIRE(rows);
    fitted += summarize(*rows).front().fitted;
    predicted += summarize(*rows).front().predicted;
    for (const ValidationRow& row : *rows) {
      const FittedRow name{row.quantity, row.set + ": " + row.case_name};
      const auto& known = of_two->profile.provenance.fit->rows;
      CHECK(row.fitted == (std::find(known.begin(), known.end(), name) != known.end()));
    }
  }
  CHECK(fitted == 4);
  CHECK(predicted == 4);
}

TEST_CASE("values of a key are compared by errors of rows held out", "[fit]") {
  // The steps are those of layers that are computed again.
  FitRequest request = request_of(set_of(small_rows), {"gemm"});
  for (ValidationCase& one : request.sets[0].set.cases) {
    Diagnostics none;
    Value study = one.study;
    Catalog catalog(HDPSIM_SOURCE_DIR);
    ValidationSet alone{.name = "one", .about = "", .source = "", .cases = {one}};
    const auto row =
        validate(read_validation(alone, "", catalog, {.set = {"training.recompute=full"}, .without = {}}), {});
    one.published.front().value = *row->front().predicted;
  }
  request.tried_key = "training.recompute";
  request.tried_values = {"none", "full"};
  const auto result = fit_to_steps(request);
  REQUIRE(result);
  REQUIRE(result->tried.size() == 2);
  CHECK(result->tried[0].value == "full");
  CHECK(result->tried[0].error_cross_validated < 0.01);
  CHECK(result->tried[1].excess > 2 * result->tried[1].excess_deviation);
  CHECK(parameter_of(*result, "gemm").value == Approx(1).epsilon(0.02));
}

TEST_CASE("a row that no parameter explains is told, and hardly moves the others", "[fit]") {
  FitRequest request = request_of(measured(set_of(small_rows), {{"gemm", 0.9}}, 0.01, 3), {"gemm"});
  request.sets[0].set.cases[3].published.front().value *= 3;
  const auto result = fit_to_steps(request);
  REQUIRE(result);
  for (std::size_t i = 0; i < result->rows.size(); ++i) CHECK(result->rows[i].unexplained == (i == 3));
  CHECK(parameter_of(*result, "gemm").value == Approx(0.9).epsilon(0.05));
}

TEST_CASE("fewer rows than parameters tell what they can, and the rest keeps its prior", "[fit]") {
  FitRequest request = request_of(measured(set_of(small_rows), {{"gemm", 0.8}}, 0, 3), {});
  request.sets[0].set.cases.resize(2);
  const auto result = fit_to_steps(request);
  REQUIRE(result);
  const std::vector<FittedParameter>& parameters = result->profile.provenance.fit->parameters;
  REQUIRE(parameters.size() > 2);
  std::size_t determined = 0;
  for (const FittedParameter& each : parameters) determined += each.determined ? 1 : 0;
  CHECK(determined < parameters.size());
  CHECK(result->after.mean < result->before.mean);
  CHECK_THAT(formatted(*result, Format::table),
             Catch::Contains(fmt::format("the rows determine {} of {} parameters", determined, parameters.size())));
}

std::string refusal_of(const FitRequest& request) {
  try {
    (void)fit_to_steps(request);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("what cannot be fitted is refused with a fix", "[fit]") {
  const ValidationSet set = set_of(small_rows);
  CHECK_THAT(refusal_of(request_of(set, {"gem", "magic"})),
             Catch::Contains("did you mean 'gemm'?") && Catch::Contains("there is no parameter 'magic'"));
  FitRequest none = request_of(set, {"gemm"});
  none.rows = {"tp 64"};
  CHECK_THAT(refusal_of(none), Catch::Contains("no row of steps has 'tp 64' in its name"));
  FitRequest twice = request_of(set, {"gemm"});
  twice.sets[0].set.cases.push_back(twice.sets[0].set.cases[0]);
  twice.sets[0].set.cases.back().name = "again";
  twice.sets[0].set.cases.back().published.front().value *= 2;
  CHECK_THAT(refusal_of(twice), Catch::Contains("rows contradict each other") && Catch::Contains("again"));
}

TEST_CASE("the rows that are held out hang on the seed alone", "[fit]") {
  const std::vector<bool> one = held_out_rows(100, 0.3, 1);
  CHECK(std::count(one.begin(), one.end(), true) == 30);
  CHECK(one == held_out_rows(100, 0.3, 1));
  CHECK(one != held_out_rows(100, 0.3, 2));
}

}  // namespace
}  // namespace hdpsim
