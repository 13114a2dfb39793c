#include "sim/tune/tune_report.h"
#include "tests/support/catch.h"
#include "tests/support/page_text.h"

namespace hdpsim {
namespace {

using Fate = TunedCandidate::Fate;

TunedCandidate candidate(const std::string& text, double time_s, Fate fate = Fate::finished) {
  TunedCandidate made;
  made.text = text;
  made.plan = text.substr(text.find(", ") + 2);
  made.fate = fate;
  made.reason = fate == Fate::infeasible ? "it does not fit" : "";
  made.gpus = 32;
  made.steps = fate == Fate::finished ? 4 : 0;
  made.time_s = time_s;
  made.ratio = time_s / 2;
  made.device_gb = 40;
  made.gpu_hours_per_gigatoken = 10;
  return made;
}

TuneResult tuned() {
  TuneResult result;
  result.study = "a <study>";
  result.profile = "mine (measured)";
  result.steps = 4;
  result.feasible = 3;
  result.device_memory_gb = 80;
  result.candidates = {candidate("tp 2, hdp-balance", 2), candidate("tp 4, hdp-balance", 3),
                       candidate("tp 8, static", 5), candidate("tp 1, static", 0, Fate::infeasible)};
  result.candidates[0].on_front = true;
  result.candidates[0].best_of_plan = result.candidates[2].best_of_plan = true;
  return result;
}

TEST_CASE("the page of a tuning begins with the best candidate, and the best of each other plan", "[tune_page]") {
  const auto data = test::page_data(tune_page(tuned(), std::nullopt));
  CHECK(data.at("answer").at("lead") ==
        "The best of 3 candidates takes 2.00 s a step: tp 2, hdp-balance. The best with static takes 5.00 s, 2.50 "
        "times as long: tp 8, static.");
}

TEST_CASE("a best candidate whose memory is at risk is told with the best one whose is not", "[tune_page]") {
  CHECK(tune_risk(tuned()).empty());
  TuneResult result = tuned();
  TunedCandidate& best = result.candidates[0];
  best.device_gb = 79.6;
  best.device_at_most_gb = 83.1;
  best.is_at_risk = true;
  const std::string told =
      "The memory of the best is at risk: 79.6 of 80.0 GB, 83.1 GB where the allocator leaves the largest gaps that "
      "were "
      "measured.";
  CHECK_THAT(tune_risk(result), Catch::StartsWith(told + " The best without that risk takes 3.00 s, ") &&
                                    Catch::EndsWith(" as long: tp 4, hdp-balance."));
  CHECK_THAT(tune_table(result, std::nullopt), Catch::Contains("79.6 at risk") && Catch::Contains(told));
  const auto data = test::page_data(tune_page(result, std::nullopt));
  CHECK(data.at("answer").at("notes").at(0) == tune_risk(result));
  CHECK(data.at("candidates").at(0).at("at_risk") == true);
  result.candidates[1].is_at_risk = result.candidates[2].is_at_risk = true;
  CHECK(tune_risk(result) == told + " So is that of all others.");
}

TEST_CASE("the page of a tuning has the candidates that can run, with their plans, and why others cannot",
          "[tune_page]") {
  const std::string page = tune_page(tuned(), Price{.amount = 2, .currency = "EUR"});
  CHECK(test::count(page, "<study>") == 0);
  const auto data = test::page_data(page);
  REQUIRE(data.at("candidates").size() == 3);
  CHECK(data.at("candidates").at(0).at("plan") == "hdp-balance");
  CHECK(data.at("candidates").at(0).at("on_front") == true);
  CHECK(data.at("candidates").at(1).at("best_of_plan") == false);
  CHECK(data.at("candidates").at(2).at("rank") == 3);
  CHECK(data.at("candidates").at(2).at("cost_per_gigatoken") == 20);  // 10 GPU-hours at 2 EUR
  CHECK(data.at("currency") == "EUR");
  CHECK(data.at("plans") == nlohmann::json::array({"static", "hdp-balance"}));
  CHECK(data.at("reasons") == nlohmann::json::array({{1, "it does not fit", "tp 1, static"}}));
}

}  // namespace
}  // namespace hdpsim
