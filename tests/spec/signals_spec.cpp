#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

// A thousand steps, each of which takes seconds on any processor.
constexpr char endless_study[] =
    "name: endless\ncluster: {preset: a100-rail-3tier, gpus: 8}\nmodel: {preset: llama-70b}\nprofile: "
    "bytescale-implied\n"
    "data: {lengths: {preset: github}, context: 8Ki, tokens_per_step: 1Gi, steps: 1000}\n"
    "plans: [static]\ngrain: exact\n";

bool holds_unfinished(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".part") return true;
  }
  return false;
}

TEST_CASE("a signal ends a process in the middle of a step", "[signals]") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  const Workplace here;
  here.write("endless.yaml", endless_study);
  Background study(here, "study endless.yaml --out results");
  study.await([&] { return fs::exists(here.folder() / "results/journal.jsonl"); });
  study.send(signal);
  CHECK(study.wait() == 128 + signal);
  CHECK(files_in(here.folder() / "results") == std::vector<std::string>{"journal.jsonl"});
}

TEST_CASE("a signal ends a process that waits for its input", "[signals]") {
  const Workplace here;
  const fs::path pipe = here.folder() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  Background check(here, "check pipe --kind study");
  int writer = -1;
  check.await([&] { return (writer = open(pipe.c_str(), O_WRONLY | O_NONBLOCK)) >= 0; });  // once it reads
  check.send(SIGTERM);
  CHECK(check.wait() == 128 + SIGTERM);
  close(writer);
}

TEST_CASE("a signal leaves no file half-written", "[signals]") {
  const Workplace here;
  Background generator(here, "trace generate --preset github --count 200000000 --out lengths.csv");
  generator.await([&] { return holds_unfinished(here.folder()); });
  generator.send(SIGTERM);
  CHECK(generator.wait() == 128 + SIGTERM);
  CHECK_FALSE(holds_unfinished(here.folder()));
  CHECK_FALSE(fs::exists(here.folder() / "lengths.csv"));
}

}  // namespace
}  // namespace hdpsim::spec
