#include "sim/base/machine_limits.h"

#include "sim/base/check.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

TEST_CASE("work beyond the machine's memory or disk is refused with both figures, other work is begun",
          "[machine_limits]") {
  const test::TemporaryFolder folder;
  CHECK_NOTHROW(require_memory("a step", 1));
  CHECK_NOTHROW(require_disk(folder.path() / "a.csv", 1));
  CHECK_NOTHROW(require_disk("/dev/null", 1e30));  // takes any amount
  CHECK_THROWS_WITH(require_memory("a step", 1e18),
                    Catch::StartsWith("a step takes about 1000000 TB of memory, and ") && Catch::EndsWith(" are free"));
  CHECK_THROWS_WITH(require_disk(folder.path() / "a.csv", 1e30), Catch::Contains("a.csv would take about"));
  CHECK_THROWS_AS(require_memory("a step", 1e18), MachineError);
}

}  // namespace
}  // namespace hdpsim
