#include <fmt/format.h>

#include <csignal>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

constexpr char small[] = "study configs/studies/tiny.yaml --set data.steps=1";

bool is_refused(const Outcome& outcome) {
  return outcome.code == 2 && outcome.err.find("error: ") != std::string::npos;
}

TEST_CASE("nothing that is read is replaced by what is written", "[outputs]") {
  const Workplace here;
  fs::create_directories(here.folder() / "d");
  fs::copy_file(here.folder() / "configs/studies/tiny.yaml", here.folder() / "d/study.yaml");
  fs::copy_file(here.folder() / "configs/studies/tiny.yaml", here.folder() / "t.yaml");
  here.write("x.csv", "length,other\n7,1\n9,2\n");
  fs::create_hard_link(here.folder() / "x.csv", here.folder() / "same.csv");
  const std::string study = here.read("d/study.yaml");
  const std::string lengths = here.read("x.csv");
  for (const char* command :
       {"study d/study.yaml --out d", "replay d/study.yaml --steps 2 --out d", "tune d/study.yaml --out d",
        "plan t.yaml --plan static --out t.yaml", "trace convert x.csv --to csv --out x.csv",
        "trace convert x.csv --out same.csv", "trace convert ./x.csv --to csv --out d/../x.csv"}) {
    CAPTURE(command);
    CHECK(is_refused(here.hdpsim(command)));
    CHECK(here.read("d/study.yaml") == study);
    CHECK(here.read("t.yaml") == study);
    CHECK(here.read("x.csv") == lengths);
    CHECK(files_in(here.folder() / "d") == std::vector<std::string>{"study.yaml"});
    CHECK_FALSE(fs::exists(here.folder() / "d/.hdpsim"));
  }
}

TEST_CASE("no link in the folder of results leads anything out of it", "[outputs]") {
  const Workplace here;
  here.write("target.txt", "mine");
  fs::create_directories(here.folder() / "out");
  for (const char* name : {"runs.csv", "runs.csv.part", "result.json"}) {
    fs::create_symlink("../target.txt", here.folder() / "out" / name);
  }
  here.run(fmt::format("{} --out out", small));
  CHECK(here.read("target.txt") == "mine");
  CHECK(fs::is_regular_file(fs::symlink_status(here.folder() / "out/runs.csv")));

  fs::create_directories(here.folder() / "elsewhere");
  fs::create_directories(here.folder() / "linked");
  fs::create_directory_symlink("../elsewhere", here.folder() / "linked/timelines");
  const Outcome outcome = here.hdpsim(fmt::format("{} --set output.perfetto=true --out linked", small));
  CHECK(outcome.code == 3);
  CHECK(outcome.err.find("linked/timelines: it is a link") != std::string::npos);
  CHECK(fs::is_empty(here.folder() / "elsewhere"));
}

TEST_CASE("one process at a time writes into a folder; a killed one frees it", "[outputs]") {
  const Workplace here;
  Background first(here, "replay configs/studies/replay.yaml --out out");
  first.await([&] { return fs::exists(here.folder() / "out/steps.csv.part"); });
  for (const char* second : {"replay configs/studies/replay.yaml --steps 2", "tune configs/studies/tune.yaml", small}) {
    CHECK_THAT(here.machine_refusal(fmt::format("{} --out out", second)),
               Catch::Contains("hdpsim replay configs/studies/replay.yaml --out out"));
  }
  first.send(SIGKILL);
  REQUIRE(first.wait() == 128 + SIGKILL);
  here.run(fmt::format("{} --out out", small));
}

TEST_CASE("a folder that is used again holds the results of the last run alone, and the user's files", "[outputs]") {
  const Workplace here;
  const std::string again = fmt::format("{} --out out", small);
  here.run(again + " --set output.html=true --set output.perfetto=true");
  REQUIRE(fs::exists(here.folder() / "out/report.html"));
  here.write("out/notes.html", "the user's");
  const Outcome second = here.run(again + " --set output.html=false");
  CHECK(second.err.find("removed from out") != std::string::npos);
  CHECK(second.err.find("report.html, timelines/") != std::string::npos);
  CHECK_FALSE(fs::exists(here.folder() / "out/report.html"));
  CHECK_FALSE(fs::exists(here.folder() / "out/timelines"));
  CHECK(here.read("out/notes.html") == "the user's");

  here.run("tune configs/studies/tune.yaml --set data.steps=2 --out out");
  CHECK_FALSE(fs::exists(here.folder() / "out/result.json"));
  CHECK(fs::exists(here.folder() / "out/best.yaml"));
  CHECK(here.hdpsim(again).err.find("best.yaml") != std::string::npos);
  CHECK(here.hdpsim(again + " --resume").err.find("removed") == std::string::npos);
}

}  // namespace
}  // namespace hdpsim::spec
