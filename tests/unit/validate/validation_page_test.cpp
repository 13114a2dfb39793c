#include "sim/validate/validation_page.h"

#include "tests/support/catch.h"
#include "tests/support/page_text.h"

namespace hdpsim {
namespace {

ValidationRow page_row(const std::string& set, const std::string& quantity, double published,
                       std::optional<double> predicted) {
  return {.set = set,
          .case_name = "a <case> & more",
          .quantity = quantity,
          .unit = "s",
          .published = published,
          .predicted = predicted,
          .not_predicted = predicted ? "" : "it is not modelled",
          .source = "a table"};
}

TEST_CASE("a page of a validation has every row, its error, and what is not predicted", "[validation_page]") {
  const std::string page =
      validation_page({page_row("one", "step_time", 2, 3), page_row("one", "step_time", 4, 4),
                       page_row("one", "memory", 10, 9), page_row("two", "step_time", 5, std::nullopt)});
  CHECK(test::count(page, "<case>") == 0);
  const auto data = test::page_data(page);
  REQUIRE(data.at("sets").size() == 3);  // two kinds of quantities in the first set
  CHECK(data.at("sets").at(1).at("quantity") == "memory");
  CHECK(data.at("rows").size() == 4);
  CHECK(data.at("rows").at(0).at("case") == "a <case> & more");
  CHECK(data.at("rows").at(0).at("published") == 2);
  CHECK(data.at("rows").at(3).at("predicted").is_null());
  CHECK(data.at("rows").at(3).at("not_predicted") == "it is not modelled");
  // Of errors of 50 and 0 % the median is 25 %, of memory 10 %; nothing of the second set is predicted.
  CHECK(data.at("answer").at("lead") ==
        "Of 4 published figures 3 are predicted; the median error of a set is from 10.0 to 25.0 %.");
}

TEST_CASE("a set whose plans were run with several numbers of micro-batches has the line through their steps",
          "[validation_page]") {
  // Published 2 m + 1 seconds, predicted m + 2.
  std::vector<ValidationRow> rows;
  for (const double m : {4.0, 8.0}) {
    rows.push_back(page_row("one", "step_time_s", 2 * m + 1, m + 2));
    rows.back().line = "a plan";
    rows.back().micro_batches = m;
  }
  rows.push_back(page_row("two", "step_time_s", 5, 5));
  const auto sets = test::page_data(validation_page(rows)).at("sets");
  CHECK(sets.at(0).at("micro_batch_error").get<double>() == Approx(-0.5));
  CHECK(sets.at(0).at("published_rest").get<double>() == Approx(0.5));
  CHECK(sets.at(0).at("predicted_rest").get<double>() == Approx(2));
  CHECK(sets.at(1).at("lines").is_null());
}

}  // namespace
}  // namespace hdpsim
