#include "sim/report/validation_page.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

ValidationRow row(const std::string& set, const std::string& quantity, double published,
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

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_CASE("a page of a validation has a chart a set and quantity, and every row", "[validation_page]") {
  const std::string page = validation_page({row("one", "step_time", 2, 3), row("one", "step_time", 4, 4),
                                            row("one", "memory", 10, 9), row("two", "step_time", 5, std::nullopt)});
  CHECK(count(page, "<section ") == 2);
  CHECK(count(page, "<svg ") == 2);  // of the second set nothing is predicted
  CHECK(count(page, "<circle ") == 3);
  CHECK(page.find("+50.0&nbsp;%") != std::string::npos);
  CHECK(page.find("it is not modelled") != std::string::npos);
  CHECK(count(page, "<case>") == 0);
  CHECK(count(page, "a &lt;case&gt; &amp; more") == 4 + 3);  // in tables and as titles of points
}

TEST_CASE("points of a chart lie on the diagonal where both figures are equal", "[validation_page]") {
  const std::string page = validation_page({row("one", "x", 1, 1), row("one", "x", 100, 100)});
  // The axes run from 0.8 to 125, 320 wide, 48 from the left: ln(1 / 0.8) / ln(125 / 0.8) of 320 is 14.1.
  CHECK(page.find(R"(<circle cx="62.1" cy="305.9")") != std::string::npos);
  CHECK(page.find(R"(<circle cx="353.9" cy="14.1")") != std::string::npos);
}

}  // namespace
}  // namespace hdpsim
