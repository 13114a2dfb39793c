#include "sim/replay/replay_report.h"
#include "sim/replay/replay_text.h"
#include "tests/support/catch.h"
#include "tests/support/page_text.h"

namespace hdpsim {
namespace {

StepRow page_row(std::int64_t step, std::size_t plan, double time_s) {
  StepRow made;
  made.step = step;
  made.plan = plan;
  made.batch = {.sequences = 4, .tokens = 400, .longest = 250, .weighted_length = 200};
  made.time_s = time_s;
  made.breakdown_s[index_of(Activity::attention)] = time_s;
  made.device_gb = plan == 2 ? 106 : 40;
  return made;
}

/// Four steps of three plans: the first is the baseline and takes 6 s, the second 3 s, the third, which does not fit, 1
/// s.
ReplayResult replayed(double threshold = 3, std::int64_t window = 2) {
  ReplayFold fold(
      {.steps = 4, .plans = 3, .window = window, .threshold = threshold, .worst = 1, .device_gb = 80, .host_gb = 10},
      [](const WindowRow&) {});
  for (std::int64_t step = 0; step < 4; ++step)
    fold.add({page_row(step, 0, 6), page_row(step, 1, 3), page_row(step, 2, 1)});
  ReplayResult result;
  result.study = "a <study>";
  result.plans = {"static", "hdp-naive", "hdp-balance"};
  result.profile = "mine (measured)";
  result.summary = fold.finish();
  result.worst.resize(3);
  return result;
}

TEST_CASE("the page of a replay begins with the fastest plan that fits in all steps", "[replay_page]") {
  const auto data = test::page_data(replay_page(replayed()));
  CHECK(data.at("answer").at("lead") ==
        "hdp-naive takes 3.00 s a step on the mean of 4 steps, static 6.00 s: 2.00 times as fast. hdp-naive is the "
        "fastest plan of every step among those that fit.");
  CHECK(data.at("baseline") == "static");
}

TEST_CASE("a lead that is never lost is told by its worst window, and the only window is between nothing",
          "[replay_page]") {
  CHECK(lead_sentence(replayed(1.5), 1) ==
        "hdp-naive is 2.00 times as fast as static or more over any 2 steps, the least in steps 0 to 1: above 1.5 "
        "everywhere.");
  CHECK_THAT(lengths_sentence(replayed(3, 4)),
             Catch::Contains("has 200 tokens on average.") && !Catch::Contains("between"));
}

TEST_CASE("a replay states speed-ups over the best static mesh beside those over its baseline", "[replay_page]") {
  ReplayResult result = replayed();
  result.best_static = BestStaticShare{"static (a2a)", "a2a", "per_document", 8, 0.75, 2};
  const auto data = test::page_data(replay_page(result));
  CHECK(data.at("summaries").at(1).at("speedup_over_best_static").at("mean") == 1.5);  // 6 s x 0.75 over 3 s
  CHECK_THAT(data.at("answer").at("lead").get<std::string>(),
             Catch::Matchers::Contains("static 6.00 s: 2.00 times as fast, and 1.50 times as fast as static (a2a), the "
                                       "best static mesh of its tp and pp."));
  const std::string table = replay_table(result);
  CHECK_THAT(table, Catch::Matchers::Contains("  over best  "));
  CHECK_THAT(table, Catch::Matchers::Contains("\nOver best: over static (a2a), the fastest sharing on the same tp and "
                                              "pp, which takes 0.75 of the time of static in 2 steps spread over the "
                                              "replay.\n"));
  const auto plan = nlohmann::json::parse(replay_json(result, Value::map(), "1")).at("plans").at(1);
  CHECK(plan.at("speedup_over_best_static").at("sharing") == "a2a");
  CHECK(plan.at("speedup_over_best_static").at("mean") == 1.5);
  CHECK_THAT(replay_table(replayed()), !Catch::Matchers::Contains("over best"));
}

TEST_CASE("the page of a replay has a summary a plan, the series, and where leads are lost", "[replay_page]") {
  const std::string page = replay_page(replayed());
  CHECK(test::count(page, "<study>") == 0);
  const auto data = test::page_data(page);
  REQUIRE(data.at("summaries").size() == 3);
  const auto& naive = data.at("summaries").at(1);
  CHECK(naive.at("step_time_s").at("mean") == 3);
  CHECK(naive.at("speedup").at("mean") == 2);
  CHECK(naive.at("unfit") == "");
  CHECK(naive.at("breakdown_s").at("attention") == 3);
  CHECK_THAT(data.at("summaries").at(2).at("unfit").get<std::string>(),
             Catch::Matchers::StartsWith("does not fit in 4 of 4 steps: up to 106.0 of 80.0 GB"));
  REQUIRE(data.at("series").size() == 4);
  CHECK(data.at("series").at(0).at(3).at(0) == nlohmann::json::array({6.0, 6.0, 6.0}));
  CHECK(data.at("leads").at(0).at("stretches").size() == 1);  // twice as fast is less than three times, everywhere
}

}  // namespace
}  // namespace hdpsim
