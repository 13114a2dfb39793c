#include <fmt/format.h>

#include <optional>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/not_run.h"

namespace hdpsim::spec {
namespace {

TEST_CASE("what new writes can be checked and run as it is", "[new]") {
  const Workplace here;
  here.write("lengths.csv", "length\n100\n2000\n70000\n");
  const Outcome made = here.run("new mine.yaml --gpus 16 --lengths lengths.csv --context 64Ki --steps 1 </dev/null");
  CHECK(
      made.err ==
      "tokens per step: 512Ki is a guess of 32Ki a GPU, but at least one sequence: the lead of plans depends on it, so "
      "state yours: --tokens-per-step\n"
      "wrote mine.yaml; next: hdpsim study mine.yaml --out mine\n");
  here.run("check mine.yaml");
  CHECK(here.run("study mine.yaml --out mine").out.find("hdp-balance") != std::string::npos);
  CHECK(fs::exists(here.folder() / "mine/report.html"));
}

TEST_CASE("new replaces a file only when it is told to, and never what it has read", "[new]") {
  const Workplace here;
  here.write("mine.yaml", "precious");
  const std::string refused = here.refusal("new mine.yaml </dev/null");
  CHECK(refused == "error: mine.yaml is there already\n        --force replaces it\n");
  CHECK(here.read("mine.yaml") == "precious");
  here.run("new mine.yaml --force </dev/null");
  here.run("check mine.yaml");
  here.write("lengths.csv", "length\n100\n");
  CHECK(here.hdpsim("new lengths.csv --lengths lengths.csv --force </dev/null").code == 2);
  CHECK(here.read("lengths.csv") == "length\n100\n");
}

TEST_CASE("all wrong options of new are told at once, and nothing is written", "[new]") {
  const Workplace here;
  const Outcome outcome =
      here.hdpsim("new mine.yaml --cluster h100-rial --model llama3-8 --context 12x --plans static,hdb </dev/null");
  CHECK(outcome.code == 2);
  CHECK(outcome.err.find("cluster:1:1: error: there is no cluster preset 'h100-rial'\n"
                         "    1 | h100-rial\n"
                         "        ^ did you mean 'h100-rail'?\n") != std::string::npos);
  for (const char* other : {"model:1:1: ", "context:1:1: ", "plans:1:9: "}) {
    CAPTURE(other);
    CHECK(outcome.err.find(other) != std::string::npos);
  }
  CHECK_FALSE(fs::exists(here.folder() / "mine.yaml"));

  const std::string together = here.refusal("new mine.yaml --gpus 8 --context 64Mi </dev/null");  // each fits something
  CHECK_THAT(together, Catch::Contains("mine.yaml was not written, since its study would have these problems"));
  CHECK_FALSE(fs::exists(here.folder() / "mine.yaml"));
}

// hdpsim at a terminal where these lines are typed. Empty where there is no terminal to be had; the test has been told.
std::optional<Outcome> at_terminal(const Workplace& here, const std::string& arguments, const std::string& typed) {
  if (here.hdpsim("--version", "script -qec true /dev/null </dev/null >/dev/null 2>&1 || exit 9;").code == 9) {
    test::say_not_run("there is no script here, or no pseudo-terminal for it");
    return std::nullopt;
  }
  here.write("typed", typed);
  const std::string call =
      fmt::format("script -qec \"'{}' {}\" /dev/null <typed >told; exit $?;", HDPSIM_BINARY, arguments);
  Outcome outcome = here.hdpsim("--version", call);
  outcome.out = here.read("told");
  return outcome;
}

TEST_CASE("on a terminal new asks for what is not given, and again where the answer is wrong", "[new]") {
  const Workplace here;
  const auto outcome =
      at_terminal(here, "new mine.yaml --lengths github", "h100-rial\n\n31\n16\nllama3-8b\n64Ki\n2Mi\n");
  if (!outcome) return;
  CAPTURE(outcome->out);
  CHECK(outcome->code == 0);
  CHECK(outcome->out.find("cluster [h100-rail]: ") != std::string::npos);
  CHECK(outcome->out.find("did you mean 'h100-rail'?") != std::string::npos);
  CHECK(outcome->out.find("write 24 or 32") != std::string::npos);
  CHECK(outcome->out.find("lengths [") == std::string::npos);
  const std::string study = here.read("mine.yaml");
  CHECK(study.find("cluster: {preset: h100-rail, gpus: 16}") != std::string::npos);
  CHECK(study.find("context: 64Ki") != std::string::npos);
  CHECK(study.find("tokens_per_step: 2Mi") != std::string::npos);
  CHECK(outcome->out.find("guess") == std::string::npos);
}

TEST_CASE("an input that ends before the last question leaves no study", "[new]") {
  const Workplace here;
  const auto outcome = at_terminal(here, "new mine.yaml", "h100-rail\n");
  if (!outcome) return;
  CHECK(outcome->code == 2);
  CHECK(outcome->out.find("nothing is written") != std::string::npos);
  CHECK_FALSE(fs::exists(here.folder() / "mine.yaml"));
}

TEST_CASE("who says nothing is told in three lines how to begin", "[new]") {
  const Workplace here;
  for (const char* arguments : {"", "study"}) {
    const std::string outcome = here.refusal(arguments);
    CHECK(line_count(outcome) == 3);
    CHECK_THAT(outcome, Catch::Contains("hdpsim new mine.yaml"));
  }
}

}  // namespace
}  // namespace hdpsim::spec
