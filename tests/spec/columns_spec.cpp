#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

TEST_CASE("the reference page of columns is what their declarations say", "[columns]") {
  const Workplace here;
  const std::string page = here.hdpsim("columns --format markdown").out;
  CHECK(page == golden("../../configs/studies/COLUMNS.md", page));
}

TEST_CASE("figures are explained by their column or their place, wherever they stand", "[columns]") {
  const Workplace here;
  CHECK(here.hdpsim("columns busy_min_s")
            .out.starts_with("busy_min_s: s, runs.csv, steps.csv, rank_busy_s.min in "
                             "result.json\n    least time in which a rank of the step "));
  CHECK(here.hdpsim("columns on_front").out ==
        "on_front: candidates.csv, on_front in tune.json\n    whether no other candidate beats it in time, memory and "
        "GPUs together\n");
  CHECK(here.hdpsim("columns planning_s").out ==
        "planning_s: s, steps.csv\n    time of planning the step, while the one before ran\n");
  CHECK(here.hdpsim("columns instructions")
            .out.starts_with("instructions: families.csv, instructions in "
                             "comparison.json\n"));
  CHECK(here.hdpsim("columns not_predicted").out ==
        "not_predicted: validation.csv, not_predicted in validation.json\n    why there is no prediction\n");
  CHECK(here.hdpsim("columns memory_gb.fits").out ==
        "fits: runs.csv, memory_gb.fits in result.json\n    whether devices and hosts have that much memory, and ranks "
        "hold no more tokens than "
        "the capacity\n");
  const std::string object = here.hdpsim("columns connections").out;
  CHECK(object.starts_with("peers: devices, runs.csv, steps.csv, connections.peers in result.json\n"));
  CHECK(object.find("\ngroups: ") != std::string::npos);
  const std::string wrong = here.refusal("columns busy_ss mfu weather");
  CHECK_THAT(wrong, Catch::Contains("no result has a figure 'busy_ss'\n        did you mean 'busy_s'?"));
  CHECK_THAT(wrong, Catch::Contains("no result has a figure 'weather'"));
}

}  // namespace
}  // namespace hdpsim::spec
