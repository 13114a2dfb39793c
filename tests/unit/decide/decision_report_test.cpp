#include "sim/decide/decision_report.h"

#include "tests/support/catch.h"
#include "tests/support/page_text.h"

namespace hdpsim {
namespace {

using Catch::Matchers::Contains;

// A search for six days of one plan that takes so many days with each size.
DecisionResult searched_for_six_days(const std::vector<std::pair<std::int64_t, double>>& days_of,
                                     std::optional<std::int64_t> smallest) {
  DecisionResult result;
  result.study = "mine";
  result.tokens = 1e9;
  result.days = 6;
  PlanSizes& plan = result.search.emplace_back();
  plan.plan = "static";
  for (const auto& [gpus, days] : days_of) {
    Run run;
    run.info.plan = "static";
    run.info.gpus = gpus;
    plan.simulated[gpus] = {std::make_shared<const Run>(run), Training{.days = days}, {}};
  }
  plan.smallest = {smallest, smallest ? "" : "steps do not get shorter"};
  return result;
}

TEST_CASE("a plan that takes longer with more GPUs, below the answer, may be in time with fewer", "[decide]") {
  const std::string uneven = "static takes longer with 16 GPUs than with 8: ";
  CHECK_THAT(decision_table(searched_for_six_days({{8, 10}, {16, 12}, {24, 5}}, 24)), Contains(uneven));
  CHECK_THAT(decision_table(searched_for_six_days({{8, 10}, {16, 9}, {24, 5}, {32, 7}}, 24)),
             !Contains("takes longer with"));
}

TEST_CASE("of plans that need as few GPUs, the one that is done first is named", "[decide]") {
  DecisionResult result = searched_for_six_days({{8, 10}, {16, 5}}, 16);
  PlanSizes& sooner = result.search.emplace_back(searched_for_six_days({{8, 10}, {16, 4}}, 16).search.front());
  sooner.plan = "hdp-balance";
  CHECK_THAT(decision_table(result), Contains("are 16, with hdp-balance: 4 days"));
}

TEST_CASE("a table and a page say the same first", "[decide]") {
  const DecisionResult found = searched_for_six_days({{8, 10}, {16, 5}}, 16);
  const std::string lead = "The fewest GPUs for 1.00G tokens in 6 days are 16, with static: 5 days.";
  CHECK_THAT(decision_table(found), Contains(lead + "\n") && Contains("static: 8 GPUs 10 days, 16 GPUs 5 days\n"));
  const auto data = test::page_data(decision_page(found));
  CHECK(data.at("answer").at("lead") == lead);
  CHECK(data.at("curves").at("series").at(0).at("points").size() == 2);
  const DecisionResult none = searched_for_six_days({{8, 10}, {16, 9}}, std::nullopt);
  CHECK_THAT(decision_table(none), Contains("No size trains 1.00G tokens in 6 days.\n") &&
                                       Contains("static cannot: steps do not get shorter\n"));
  CHECK(test::page_data(decision_page(none)).at("tables").empty());
}

}  // namespace
}  // namespace hdpsim
