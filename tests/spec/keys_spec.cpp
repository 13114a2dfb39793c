#include "tests/spec/workplace.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

TEST_CASE("the reference page of keys is what their declarations say", "[keys]") {
  const Workplace here;
  for (const auto& [file, folder] :
       {std::pair("study", "studies"), std::pair("cluster", "clusters"), std::pair("validation", "validation"),
        std::pair("tasks", "tasks")}) {
    const std::string page = here.hdpsim(std::string("keys --format markdown --of ") + file).out;
    CHECK(page == golden(std::string("../../configs/") + folder + "/KEYS.md", page));
  }
}

TEST_CASE("keys of a cluster are explained, those below a name of the user's too", "[keys]") {
  const Workplace here;
  CHECK(here.hdpsim("keys --of cluster node.nics.count").out ==
        "node.nics.count: NICs from 1 to 65536 (required)\n    NICs of a node, among which its GPUs are divided in "
        "their order; NIC i lies on rail i; several a GPU act as one\n");
  CHECK(here.hdpsim("keys --of cluster tiers").out.find("tiers.*.fan_in: ") != std::string::npos);
  CHECK_THAT(here.refusal("keys --of cluster node.nic"), Catch::Contains("did you mean 'node.nics'?"));
}

TEST_CASE("keys are explained by their path, sections by all of theirs", "[keys]") {
  const Workplace here;
  const Outcome one = here.hdpsim("keys mesh.tp");
  CHECK(one.out.starts_with("mesh.tp: devices from 1 to 65536 (`1`)\n    tensor parallelism"));
  const Outcome all = here.hdpsim("keys mesh");
  CHECK(all.out.find(one.out) != std::string::npos);
  CHECK(all.out.find("mesh.zero: ") != std::string::npos);
  CHECK_THAT(here.refusal("keys mesh.zeroo"), Catch::Contains("did you mean 'mesh.zero'?"));
}

}  // namespace
}  // namespace hdpsim::spec
