// Catch2 2.x compiles itself into the one source that defines this, which takes longer than most tests.
#define CATCH_CONFIG_RUNNER
#include "tests/support/catch_runner.h"

#include "tests/support/catch.h"

namespace hdpsim::test {

int run_tests(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}

}  // namespace hdpsim::test
