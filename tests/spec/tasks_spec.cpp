#include <nlohmann/json.hpp>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("tasks are compared by policies, as a table, CSV, JSON and files", "[tasks]") {
  const Workplace here;
  const std::string asked = "tasks configs/tasks/clip.yaml --set cluster.gpus=16";
  const std::string table = here.run(asked).out;
  const auto result = nlohmann::json::parse(here.run(asked + " --format json --out out").out);
  CHECK(result["schema"] == "hdpsim.tasks/1");
  CHECK(nlohmann::json::parse(here.read("out/tasks.json")) == result);
  CHECK(here.read("out/tasks.csv") == here.run(asked + " --format csv").out);
  CHECK_THAT(here.read("out/tasks.html"), Contains("spindle"));
  for (const auto& each : result["cases"]) {
    CHECK(each["gpus"] == 16);
    const double first = each["rows"][0]["step_s"].get<double>();
    for (const auto& row : each["rows"]) {
      CHECK_THAT(table, Contains(row["policy"].get<std::string>()));
      double sum = 0;
      for (const char* part : {"forward_s", "backward_s", "messages_s", "gradients_s", "optimizer_s"}) {
        sum += row[part].get<double>();
      }
      CHECK(row["step_s"].get<double>() == Approx(sum));
      CHECK(row["speedup"].get<double>() == Approx(first / sum));
      CHECK_FALSE(row["rounds"].empty());
    }
  }
}

TEST_CASE("wrong tasks are wrong input, with a place", "[tasks]") {
  const Workplace here;
  here.write("tasks.yaml", "name: bad\nmodules: {a: {layers: 2}}\ntasks: {t: {batch: 2, graph: {b: {tokens: 3}}}}\n");
  const std::string said = here.refusal("tasks tasks.yaml");
  CHECK_THAT(said, Contains("tasks.yaml:3:31: "));
  CHECK_THAT(said, Contains("tasks.yaml:1:1: "));  // no cluster
  CHECK_THAT(here.refusal("tasks configs/tasks/clip.yaml --set cluster.gpus=12"), Contains("gpus"));
  CHECK_THAT(here.run("check configs/tasks/clip.yaml").out, Contains("tasks in 3 cases"));
}

}  // namespace
}  // namespace hdpsim::spec
