#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;

constexpr char prices[] = "hardware: {A100-80GB: {price: 2 USD/GPU-hour, gpu_power: 500 W}}\npue: 1.2\n";

TEST_CASE("a decision is that of the figures of result.json, from the study as from its folder", "[decide]") {
  const Workplace here;
  here.write("prices.yaml", prices);
  here.run("study configs/studies/tiny.yaml --out tiny");
  const std::string asked = " --tokens 2G --prices prices.yaml --format json";
  const std::string told = here.run("decide tiny" + asked).out;
  CHECK(told == here.run("decide configs/studies/tiny.yaml" + asked).out);
  const auto decision = nlohmann::json::parse(told);
  const auto runs = nlohmann::json::parse(here.read("tiny/result.json"))["runs"];
  REQUIRE(decision["rows"].size() == runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& row = decision["rows"][i];
    const double days = 2e9 / runs[i]["tokens_per_s"].get<double>() / 86400;
    const double hours = days * 24 * runs[i]["gpus"].get<double>();
    CHECK(row["plan"] == runs[i]["plan"]);
    CHECK(row["point"] == runs[i]["point"]);
    CHECK(row["days"].get<double>() == Approx(days));
    CHECK(row["gpu_hours"].get<double>() == Approx(hours));
    CHECK(row["cost"].get<double>() == Approx(2 * hours));
    CHECK(row["energy_mwh"].get<double>() == Approx(1.2 * 500e-6 * hours));
    const double step_s = runs[i]["step_time_s"]["mean"].get<double>();
    const double most_s = runs[i]["confidence"]["step_time_s"]["most"].get<double>();
    CHECK(row["sure_days"]["most"].get<double>() == Approx(days * most_s / step_s));
    const double first = runs[i % 3]["tokens_per_s"].get<double>();
    CHECK(row["over_first"]["days"].get<double>() == Approx(first / runs[i]["tokens_per_s"].get<double>()));
  }
}

TEST_CASE("goodput makes days longer, and the price of a study is that of its tuning", "[decide]") {
  const Workplace here;
  const std::string asked =
      "decide configs/studies/tune.yaml --tokens 1G --format json --set data.steps=1 --set 'plans=[static]' ";
  const auto well = nlohmann::json::parse(here.run(asked).out);
  const auto failing =
      nlohmann::json::parse(here.run(asked + "--set 'failures={node_mtbf: 2 d, checkpoint: 60 s}'").out);
  const auto& row = failing["rows"][0];
  CHECK(row["goodput"].get<double>() < 1);
  CHECK(row["days"].get<double>() * row["goodput"].get<double>() == Approx(well["rows"][0]["days"].get<double>()));
  CHECK(row["cost"].get<double>() == Approx(2 * row["gpu_hours"].get<double>()));  // as tune.yaml states
  CHECK(failing["currency"] == "USD");
}

TEST_CASE("the smallest cluster is named with what was simulated, or why there is none", "[decide]") {
  const Workplace here;
  const std::string asked =
      "decide configs/studies/tiny.yaml --tokens 10G --set sweep={} --set compare_to=hdp-naive --set "
      "'plans=[hdp-naive]' ";
  const std::string own = here.run(asked + "--format json").out;
  const double days = nlohmann::json::parse(own)["rows"][0]["days"].get<double>();
  const std::string limit = fmt::format("--days {} ", days / 2.5);
  const auto found = nlohmann::json::parse(here.run(asked + limit + "--format json").out);
  const std::int64_t gpus = found["search"]["plans"][0]["smallest"]["gpus"].get<std::int64_t>();
  int smallest = 0;
  for (const auto& row : found["rows"]) {
    smallest += row["smallest"].get<bool>() ? 1 : 0;
    const bool is_in_time = row["days"].get<double>() <= days / 2.5;
    CHECK(is_in_time == (row["gpus"].get<std::int64_t>() >= gpus));
    CHECK(row["smallest"].get<bool>() == (row["gpus"] == gpus));
  }
  CHECK(smallest == 1);
  CHECK_THAT(here.run(asked + limit).out,
             Contains(fmt::format(" are {}, with hdp-naive", gpus)) && Contains("simulated for hdp-naive: "));
  here.run(asked + limit + "--out out");
  CHECK(here.read("out/decision.json") == here.run(asked + limit + "--format json").out);
  CHECK(here.read("out/decision.csv") == here.run(asked + limit + "--format csv").out);
  CHECK_THAT(here.run(asked + "--days 0.00001").out,
             Contains("No size trains") && Contains("not get shorter any more"));
  CHECK_THAT(here.run(asked + fmt::format("--days {} --most-gpus 40", days / 2.5)).out,
             Contains("hdp-naive cannot: up to 40 GPUs"));
}

TEST_CASE("a date is a number of days from another", "[decide]") {
  const Workplace here;
  const std::string asked = "decide configs/studies/tiny.yaml --tokens 10G --set sweep={} --set 'plans=[static]' ";
  CHECK(here.run(asked + "--from 2028-02-28 --by 2028-03-01 --format json").out ==  // a leap year
        here.run(asked + "--days 2 --format json").out);
  CHECK_THAT(here.refusal(asked + "--by 2027-02-29"), Contains("'2027-02-29' is no date"));
  CHECK_THAT(here.refusal(asked + "--by 2028-03-01 --from 2028-03-01"), Contains("leaves no day to train"));
  CHECK_THAT(here.refusal(asked + "--by 2028-03-01 --days 3"), Contains("name one"));
  CHECK_THAT(here.refusal(asked + "--from 2028-03-01"), Contains("--from goes with --by"));
}

TEST_CASE("a decision's mistakes are wrong input, before anything is simulated", "[decide]") {
  const Workplace here;
  const std::string tiny = "decide configs/studies/tiny.yaml ";
  CHECK_THAT(here.refusal(tiny), Contains("--tokens is required"));
  CHECK_THAT(here.refusal(tiny + "--tokens 0"), Contains("0 is less than 1"));
  CHECK_THAT(here.refusal(tiny + "--tokens 1G --days 0"), Contains("a positive number of days"));
  CHECK_THAT(here.refusal(tiny + "--tokens 1G --days -1"), Contains("a positive number of days"));
  CHECK_THAT(here.refusal(tiny + "--tokens 1G --most-gpus 64"), Contains("goes with --days or --by"));
  CHECK_THAT(here.refusal("decide nowhere --tokens 1G"), Contains("nowhere"));
  CHECK_THAT(here.refusal("decide configs --tokens 1G"), Contains("study.yaml"));
  here.write("prices.yaml", "hardware: {h100-rail: {price: 2 USD/GPU-hour}}\n");
  CHECK_THAT(here.refusal(tiny + "--tokens 1G --prices prices.yaml"),
             Contains("there is no price of the cluster a100-rail-3tier or of its device A100-80GB"));
  here.write("prices.yaml", "hardware: {h100-rail: {price: -2 USD/GPU-hour}}\n");
  CHECK_THAT(here.refusal(tiny + "--tokens 1G --prices prices.yaml"), Contains("prices.yaml:1:31: error: "));
  CHECK_THAT(here.refusal("check prices.yaml"), Contains("prices.yaml:1:31: error: "));
  CHECK_THAT(here.refusal(tiny + "--tokens 1G --days 1 --set sweep={} --set data.context=32Ki --set mesh.nodes=0-1 "
                                 "--set 'background=[{name: other, nodes: 2-3, "
                                 "traffic: {pattern: permutation}}]'"),
             Contains("the job trains on 16 of the cluster's 32 GPUs"));
}

}  // namespace
}  // namespace hdpsim::spec
