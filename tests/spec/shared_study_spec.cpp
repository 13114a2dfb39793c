#include <fmt/format.h>

#include <memory>

#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

using namespace std::chrono_literals;
using Catch::Contains;

constexpr int points = 24;

std::string many_points() {
  std::string seeds = "1";
  for (int seed = 2; seed <= points; ++seed) seeds += fmt::format(", {}", seed);
  return fmt::format(
      "name: many\ncluster: {{preset: a100-rail-3tier, gpus: 16}}\nmodel: {{preset: llama-7b}}\n"
      "profile: bytescale-implied\n"
      "data: {{lengths: {{preset: github}}, context: 32Ki, tokens_per_step: 256Ki, steps: 8}}\n"
      "mesh: {{tp: 2}}\nplans: [hdp-balance]\nsweep: {{data.seed: [{}]}}\n",
      seeds);
}

/// What one thread of one process makes of the study, once for all tests.
const Workplace& made_alone() {
  static const std::unique_ptr<Workplace> here = [] {
    auto made = std::make_unique<Workplace>();
    made->write("many.yaml", many_points());
    REQUIRE(made->hdpsim("study many.yaml --jobs 1 --out whole --format json >whole.json").code == 0);
    return made;
  }();
  return *here;
}

// One point takes as long as little more than the start of a process.
std::string patience() {
  return patience_for(3s,
                      [] { CHECK(made_alone().hdpsim("study many.yaml --set 'sweep={data.seed: [1]}'").code == 0); });
}

/// A study of many small points in a folder of its own, and the results that it must have.
class ManyPoints : public Workplace {
 public:
  ManyPoints() {
    write("many.yaml", many_points());
    const fs::path alone = made_alone().folder();
    fs::copy(alone / "whole", folder() / "whole", fs::copy_options::recursive);
    fs::copy(alone / "whole.json", folder() / "whole.json");
  }

  void check_same_as_whole(const std::string& folder) const {
    for (const char* name :
         {"result.json", "runs.csv", "steps.csv", "ranks.csv", "links.csv", "memory.csv", "study.yaml"}) {
      check_same_file(*this, "whole/" + std::string(name), folder + "/" + name);
    }
    CHECK(line_count(read(folder + "/journal.jsonl")) == 1 + points);
  }

  /// The study by `ranks` processes, one of which gets a signal when some runs are kept in the folder "shared", and
  /// others are not. A machine that looks away between the two may have all of them kept: it tries again.
  [[nodiscard]] Outcome with_a_blow(const std::string& signal, int ranks, int victim,
                                    const std::string& options = "") const {
    // The shell becomes hdpsim, so its number stays.
    write("struck", fmt::format("kept() {{ n=$(grep -cs '^{{\"key\"' shared/journal.jsonl); echo ${{n:-0}}; }}\n"
                                "if [ \"$OMPI_COMM_WORLD_RANK\" = {} ]; then\n"
                                "  (while [ \"$(kept)\" -lt {} ] && kill -0 $$; do sleep 0.01; done\n"
                                "   kept >struck_at; kill -{} $$) &\n"
                                "fi\nexec \"$@\"\n",
                                victim, points / 3, signal));
    constexpr int most_attempts = 10;
    Outcome outcome;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      fs::remove_all(folder() / "shared");
      outcome = hdpsim(fmt::format("study many.yaml --out shared --patience {}", patience()),
                       mpirun(fmt::format("-n {} {} sh struck", ranks, options)));
      if (struck_at() < points) break;
    }
    CAPTURE(outcome.err);
    REQUIRE(struck_at() >= points / 3);
    REQUIRE(struck_at() < points);
    return outcome;
  }

 private:
  /// How many runs were kept when the process died.
  [[nodiscard]] int struck_at() const { return fs::exists(folder() / "struck_at") ? std::stoi(read("struck_at")) : 0; }
};

TEST_CASE("processes under mpirun write the same bytes as one process", "[study][mpi]") {
  if (is_without_mpi()) return;
  const ManyPoints here;
  const Outcome outcome = here.run("study many.yaml --out shared --format json >shared.json", mpirun("-n 4"));
  // A line a run, whatever MPI has to say beside them.
  for (int run = 1; run <= points; ++run) {
    CHECK_THAT("\n" + outcome.err, Contains(fmt::format("\n{}/{} hdp-balance", run, points)));
  }
  here.check_same_as_whole("shared");
  check_same_file(here, "whole.json", "shared.json");
}

TEST_CASE("the runs of a process that dies are done by the others", "[study][mpi]") {
  if (is_without_mpi()) return;
  const ManyPoints here;
  const Outcome outcome = here.with_a_blow("KILL", 4, 2, "--enable-recovery");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  here.check_same_as_whole("shared");
}

TEST_CASE("a process that stands still to the end does not keep a study from ending well", "[study][mpi]") {
  if (is_without_mpi()) return;
  const ManyPoints here;
  const Outcome outcome = here.with_a_blow("STOP", 3, 1);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  here.check_same_as_whole("shared");
}

TEST_CASE("a study whose process 0 dies goes on with --resume, to the same bytes", "[study][mpi]") {
  if (is_without_mpi()) return;
  const ManyPoints here;
  const Outcome outcome = here.with_a_blow("KILL", 3, 0, "--enable-recovery");
  CHECK_THAT(outcome.err, Contains("error: process 0 is lost"));
  CHECK_FALSE(fs::exists(here.folder() / "shared/result.json"));
  const Outcome resumed = here.hdpsim("study many.yaml --out shared --resume", mpirun("-n 2"));
  CAPTURE(resumed.err);
  CHECK(resumed.code == 0);
  here.check_same_as_whole("shared");
}

TEST_CASE("processes that have read different studies are told so", "[study][mpi]") {
  if (is_without_mpi()) return;
  const Workplace here;
  here.write("another", "exec \"$@\" --set data.seed=$((OMPI_COMM_WORLD_RANK + 1))\n");
  CHECK_THAT(here.refusal("study configs/studies/tiny.yaml", mpirun("-n 2") + " sh another"),
             Contains("process 1 has read another study than process 0"));
}

TEST_CASE("wrong input is told once, however many processes read it", "[study][mpi]") {
  if (is_without_mpi()) return;
  const std::string outcome = Workplace().refusal("study configs/studies/tiny.yaml --set nonsense=1", mpirun("-n 3"));
  const std::string problem = "the study has no key 'nonsense'";
  const std::size_t first = outcome.find(problem);
  REQUIRE(first != std::string::npos);
  CHECK(outcome.find(problem, first + 1) == std::string::npos);
}

TEST_CASE("validation under mpirun predicts the same", "[validate][mpi]") {
  if (is_without_mpi()) return;
  const Workplace here;
  const std::string sets = "validate korthikanti --format json";
  here.run(sets + " >alone");
  here.run(sets + " >shared", mpirun("-n 3"));
  check_same_file(here, "alone", "shared");
}

TEST_CASE("a study that is killed at any moment goes on to the same bytes", "[study]") {
  const ManyPoints here;
  run_through_kills(here, "study many.yaml --out shared", "shared", {.times = 4, .seed = 20261121, .within = 300ms});
  here.check_same_as_whole("shared");
}

}  // namespace
}  // namespace hdpsim::spec
