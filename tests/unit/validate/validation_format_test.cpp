#include "sim/validate/validation_format.h"

#include <nlohmann/json.hpp>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

ValidationRow row(const std::string& set, double published, std::optional<double> predicted) {
  return {.set = set,
          .case_name = "a case",
          .quantity = "step_time_s",
          .unit = "s",
          .published = published,
          .predicted = predicted,
          .not_predicted = predicted ? "" : "it cannot be done yet",
          .source = "a paper, with a comma",
          .job = "one job"};
}

TEST_CASE("errors of a set: median, mean and worst of their sizes, the median of their signs", "[validation]") {
  // +10 %, -20 %, +60 %, and one that is not predicted.
  const auto sets = summarize({row("a", 10, 11), row("a", 10, 8), row("a", 10, 16), row("a", 10, {}), row("b", 1, 1)});
  REQUIRE(sets.size() == 2);
  CHECK(sets[0].set == "a");
  CHECK(sets[0].rows == 4);
  CHECK(sets[0].predicted == 3);
  CHECK(sets[0].median_abs_error == Approx(0.2));
  CHECK(sets[0].mean_abs_error == Approx((0.1 + 0.2 + 0.6) / 3));
  CHECK(sets[0].worst_abs_error == Approx(0.6));
  CHECK(sets[0].median_error == Approx(0.1));
  CHECK(sets[0].not_predicted == std::vector<std::string>{"1 x it cannot be done yet"});
  CHECK(sets[1].rows == 1);
  CHECK(sets[1].median_abs_error == 0);
  CHECK_FALSE(sets[1].ranking);  // one plan alone has no order
}

TEST_CASE("a bias below 0 is a step that is too short, of times and of rates alike", "[validation]") {
  for (const char* rate : {"tokens_per_s_per_gpu", "tflops_per_gpu static", "mfu"}) {
    CAPTURE(rate);
    ValidationRow fast = row("a", 400, 500);
    fast.quantity = rate;
    const auto sets = summarize({row("a", 10, 8), fast});
    REQUIRE(sets.size() == 2);
    CHECK(sets[0].median_error == Approx(-0.2));
    CHECK(sets[1].median_error == Approx(-0.2));  // 400 / 500 of the published time
    CHECK(sets[1].worst_abs_error == Approx(0.25));
  }
}

TEST_CASE("kinds of quantities have errors of their own, whatever the plan", "[validation]") {
  ValidationRow memory = row("a", 10, 10);
  memory.quantity = "memory_gb";
  ValidationRow of_plan = row("a", 10, 12);
  of_plan.quantity = "step_time_s static";
  const auto sets = summarize({row("a", 10, 11), memory, row("b", 1, 1), of_plan});
  REQUIRE(sets.size() == 3);
  CHECK(sets[0].quantity == "step_time_s");
  CHECK(sets[0].rows == 2);
  CHECK(sets[0].worst_abs_error == Approx(0.2));
  CHECK(sets[1].set == "a");
  CHECK(sets[1].quantity == "memory_gb");
  CHECK(sets[1].worst_abs_error == 0);
  CHECK(sets[2].set == "b");
}

TEST_CASE("a row that a constant of the set was taken from is no part of the set's errors", "[validation]") {
  ValidationRow fitted = row("a", 10, 16);
  fitted.fitted = true;
  const auto sets = summarize({row("a", 10, 11), fitted});
  CHECK(sets[0].rows == 2);
  CHECK(sets[0].predicted == 1);
  CHECK(sets[0].fitted == 1);
  CHECK(sets[0].worst_abs_error == Approx(0.1));
  CHECK_THAT(formatted({fitted}, Format::table), Catch::Contains("+60.0%  fitted"));
}

TEST_CASE("the median of an even number of errors lies between the two in the middle", "[validation]") {
  // 10 %, 20 %, 30 %, 60 %
  const auto sets = summarize({row("a", 10, 11), row("a", 10, 8), row("a", 10, 16), row("a", 10, 13)});
  CHECK(sets[0].median_abs_error == Approx(0.25));
}

TEST_CASE("the line through a plan's steps stands in the table of sets that have one, and in their figures",
          "[validation]") {
  ValidationRow few = row("a", 2, 1.2);
  ValidationRow many = row("a", 4, 2.8);
  few.line = many.line = "one plan";
  few.micro_batches = 1;
  many.micro_batches = 3;
  // Published 1 s a micro-batch and 1 s besides; predicted 0.8 s and 0.4 s.
  const std::string table = formatted({few, many, row("b", 1, 1)}, Format::table);
  CHECK_THAT(table, Catch::Contains("ranking  micro-batch         rest\n"));
  CHECK_THAT(table, Catch::Contains("       -20.0%  1.00 / 0.50\n"));
  CHECK_THAT(formatted({row("b", 1, 1)}, Format::table), !Catch::Contains("micro-batch"));
  const auto sets = nlohmann::json::parse(formatted({few, many, row("b", 1, 1)}, Format::json)).at("sets");
  CHECK(sets.at(0).at("lines") == 1);
  CHECK(sets.at(0).at("micro_batch_error").get<double>() == Approx(-0.2));
  CHECK(sets.at(0).at("predicted_rest").get<double>() == Approx(0.5));
  CHECK(sets.at(1).at("lines").is_null());
}

TEST_CASE("validation as JSON and CSV: what has no prediction is null, empty, and says why", "[validation]") {
  const std::vector<ValidationRow> rows = {row("a", 10, 11), row("a", 10, {})};
  const auto json = nlohmann::json::parse(formatted(rows, Format::json));
  CHECK(json.at("schema") == "hdpsim.validation/1");
  CHECK(json.at("rows").at(0).at("predicted") == 11);
  CHECK(json.at("rows").at(1).at("predicted").is_null());
  CHECK(json.at("rows").at(1).at("not_predicted") == "it cannot be done yet");
  for (const char* key : {"set", "case", "quantity", "published", "predicted", "unit", "source"}) {
    CHECK(json.at("rows").at(0).contains(key));
  }
  CHECK(json.at("sets").at(0).at("rows") == 2);
  CHECK(json.at("sets").at(0).at("median_abs_error").get<double>() == Approx(0.1));
  CHECK(json.at("sets").at(0).at("worst_abs_error").get<double>() == Approx(0.1));
  CHECK(formatted({row("a", 10, {})}, Format::csv) ==
        "set,case,quantity,unit,published,predicted,error,fitted,fits,at_risk,not_predicted,source\n"
        "a,a case,step_time_s,s,10,,,false,true,false,it cannot be done yet,\"a paper, with a comma\"\n");
}

}  // namespace
}  // namespace hdpsim
