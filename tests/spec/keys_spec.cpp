#include "tests/spec/command.h"
#include "tests/support/catch.h"

namespace hdpsim::spec {
namespace {

TEST_CASE("the reference page of keys is what their declarations say", "[keys]") {
  const Workplace here;
  const std::string page = here.hdpsim("keys --format markdown").out;
  CHECK(page == golden("../../configs/studies/KEYS.md", page));
}

TEST_CASE("keys are explained by their path, sections by all of theirs", "[keys]") {
  const Workplace here;
  const Outcome one = here.hdpsim("keys mesh.tp");
  CHECK(one.out.starts_with("mesh.tp: devices from 1 to 65536 (`1`)\n    tensor parallelism"));
  const Outcome all = here.hdpsim("keys mesh");
  CHECK(all.out.find(one.out) != std::string::npos);
  CHECK(all.out.find("mesh.zero: ") != std::string::npos);
  const Outcome wrong = here.hdpsim("keys mesh.zeroo");
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("did you mean 'mesh.zero'?") != std::string::npos);
}

}  // namespace
}  // namespace hdpsim::spec
