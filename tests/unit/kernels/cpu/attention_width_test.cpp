#include "kernels/cpu/cpu_backend.h"
#include "tests/support/catch.h"
#include "tests/unit/kernels/cpu/attention_checks.h"

using namespace hdpsim::kernels;
using namespace hdpsim::test;

TEST_CASE("heads of 256, and of 192 with values of 128, agree with fp64, forward and backward", "[attention]") {
  const std::vector<BlockShape> shapes = {
      {129, 129},        {65, 200, Mask::full}, {1, 1}, {90, 7, Mask::causal}, {150, 150, Mask::causal, 37},
      {5, 0, Mask::full}};
  const std::int64_t dim = GENERATE(192, 256);
  const std::int64_t kv_heads = GENERATE(1, 2);
  INFO("heads of " << dim << ", " << kv_heads << " of keys");
  AttentionProblem problem(80, heads_of(2, kv_heads, dim), shapes);
  SECTION("without sinks") {
    check_problem(problem);
  }
  SECTION("with sinks") {
    problem.sinks = {0.5F, -1.0F};
    check_problem(problem);
  }
}

TEST_CASE("wide heads over more queries and keys than are packed at once agree with fp64", "[attention]") {
  const std::int64_t dim = GENERATE(192, 256);
  INFO("heads of " << dim);
  check_problem({81, heads_of(1, 1, dim), {{40, 3200, Mask::causal}, {1100, 1000, Mask::causal, 100}}});
}
