#pragma once

#include <cstdio>
#include <string>

#include "tests/support/catch.h"

namespace hdpsim::test {

/// Says why the test case that runs now tests nothing, or less than elsewhere. A case cannot be skipped in the eyes of
/// ctest, which sees whole programs, so scripts/test looks for these lines and lists them when all tests are over.
inline void say_not_run(const std::string& reason) {
  const std::string name(Catch::getResultCapture().getCurrentTestName());
  std::fprintf(stderr, "NOT RUN: %s: %s\n", name.c_str(), reason.c_str());
}

}  // namespace hdpsim::test
