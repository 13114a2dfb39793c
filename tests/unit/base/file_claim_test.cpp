#include "sim/base/atomic_file.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "sim/base/check.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace hdpsim {
namespace {

bool is_empty(const test::TemporaryFolder& folder) {
  return std::filesystem::is_empty(folder.path());
}

TEST_CASE("a name that one process will write is refused to a second, and told of, until the first gives it up",
          "[output]") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "fitted.yaml";
  auto first = std::make_unique<FileClaim>(path, "hdpsim calibrate --from-steps mine.csv");
  CHECK_THROWS_WITH(FileClaim(path, "other"),
                    Catch::Contains("cannot write " + path.string() + ": it is being written by process ") &&
                        Catch::Contains("hdpsim calibrate --from-steps mine.csv"));
  CHECK_THROWS_AS(FileClaim(path, "other"), MachineError);
  CHECK_NOTHROW(FileClaim(folder.path() / "another.yaml", "other"));
  first.reset();
  CHECK_NOTHROW(FileClaim(path, "other"));
  CHECK(is_empty(folder));
}

TEST_CASE("the name of a process that was killed is free", "[output]") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "fitted.yaml";
  const pid_t child = fork();
  if (child == 0) {
    const FileClaim claim(path, "killed");
    kill(getpid(), SIGKILL);
  }
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK_FALSE(is_empty(folder));
  CHECK_NOTHROW(FileClaim(path, "next"));
  CHECK(is_empty(folder));
}

TEST_CASE("a name in a folder that is not there cannot be claimed", "[output]") {
  CHECK_THROWS_WITH(FileClaim("no folder/fitted.yaml", "other"), Catch::Contains("cannot write no folder/fitted.yaml"));
}

}  // namespace
}  // namespace hdpsim
