#include "sim/validate/framework_log.h"

#include <fmt/format.h>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

std::string megatron_line(int iteration, double milliseconds, int batch) {
  return fmt::format(
      " [2026-01-06 03:00:54] iteration {:8}/     100 | consumed samples: {:12} | elapsed time per iteration (ms): "
      "{:.1f} "
      "| throughput per GPU (TFLOP/s/GPU): 239.6 | learning rate: 1.140000E-05 | global batch size: {:5} | lm loss: "
      "1.864605E+00 | loss scale: 1.0 | grad norm: 1.544 |\n",
      iteration, iteration * batch, milliseconds, batch);
}

TEST_CASE("steps of Megatron-LM's log are times of iterations, without the first one", "[log]") {
  const std::string log = "building GPT model ...\n" + megatron_line(1, 25000, 128) + "saving checkpoint\n" +
                          megatron_line(2, 5450.5, 128) + megatron_line(3, 5538.9, 128);
  const auto steps = steps_of_log("run.log", log);
  REQUIRE(steps);
  REQUIRE(steps->columns.items.size() == 1);
  CHECK(steps->columns.items[0].text == "step_time_s");
  REQUIRE(steps->lines.size() == 2);
  CHECK(steps->lines[0].items[0].text == "5.4505");
  CHECK(steps->lines[0].position.line == 4);
  CHECK(steps_of_log("run.log", megatron_line(1, 25000, 128))->lines.size() == 1);  // better than none
}

TEST_CASE("where the global batch grows, steps of different batches are of different jobs", "[log]") {
  const auto steps = steps_of_log("run.log", megatron_line(2, 1000, 64) + megatron_line(3, 2000, 128));
  REQUIRE(steps);
  REQUIRE(steps->columns.items.size() == 2);
  CHECK(steps->columns.items[1].text == "global_batch");
  CHECK(steps->lines[1].items[1].text == "128");
}

TEST_CASE("steps of torchtitan's log are rates of a GPU, coloured or not", "[log]") {
  const std::string log =
      "[rank0]:[titan] 2026-01-16 22:30:40,322 - root - INFO - Training starts at step 1 https://a.b\n"
      "[rank0]:[titan] 2026-01-16 22:30:50,322 - root - INFO - step: 200  loss:  6.1384  memory: 49.66GiB(52.28%)  "
      "tps: "
      "5,856  tflops: 339.16  mfu: 34.29%\n"
      "[rank0]:2024-10-01 - root - INFO - \x1b[31mstep: 201  \x1b[32mloss: 6.1  \x1b[34mtps: 10,856.5  \x1b[36mmfu: "
      "1%\n";
  const auto steps = steps_of_log("run.log", log);
  REQUIRE(steps);
  CHECK(steps->columns.items[0].text == "tokens_per_s_per_gpu");
  REQUIRE(steps->lines.size() == 2);
  CHECK(steps->lines[0].items[0].text == "5856");
  CHECK(steps->lines[1].items[0].text == "10856.5");
}

TEST_CASE("what no framework writes has no steps", "[log]") {
  CHECK_FALSE(steps_of_log("run.log", ""));
  CHECK_FALSE(steps_of_log("run.log", "tp,dp,step_time_s\n1,8,2\n"));
  CHECK_FALSE(steps_of_log("run.log", "iteration 3 | elapsed time per iteration (ms): nan\nstep: 3 tps: fast\n"));
}

}  // namespace
}  // namespace hdpsim
