#include "tests/support/catch_runner.h"

int main(int argc, char** argv) {
  return hdpsim::test::run_tests(argc, argv);
}
