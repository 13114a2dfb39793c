#pragma once

namespace hdpsim::test {

/// Runs the test cases that the arguments of the program choose. Returns its exit status.
[[nodiscard]] int run_tests(int argc, char** argv);

}  // namespace hdpsim::test
