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

TEST_CASE("steps of warm-up are left out as long as they are slower than the median, but not half of all", "[log]") {
  std::string log = megatron_line(1, 25000, 128);
  for (const double milliseconds : {3000., 1300., 1000., 1090., 2000., 1000., 1000., 1000.}) {
    log += megatron_line(2, milliseconds, 128);
  }
  const auto steps = steps_of_log("run.log", log);
  REQUIRE(steps);
  CHECK(steps->warm_up == 3);
  REQUIRE(steps->lines.size() == 6);
  CHECK(steps->lines[0].items[0].text == "1");
  CHECK(steps->lines[2].items[0].text == "2");  // a slow step behind them counts
  // Rates are slower where they are lower. Two of three slow steps are no warm-up.
  std::string rates;
  for (const int rate : {100, 200, 900, 1000, 1000}) rates += fmt::format("step: {}  tps: {}\n", rate, rate);
  CHECK(steps_of_log("run.log", rates)->warm_up == 2);
  CHECK(steps_of_log("run.log", megatron_line(2, 2000, 1) + megatron_line(3, 2000, 1) + megatron_line(4, 1000, 1))
            ->warm_up == 0);
}

TEST_CASE("steps of nanotron and NeMo are times of iterations", "[log]") {
  const auto nanotron = steps_of_log(
      "run.log",
      "[default0]:03/01/2025 10:00:00 [INFO|DP=0|PP=0|TP=0|node-1]: iteration: 5 / 100 | consumed_tokens: 5.24M | "
      "elapsed_time_per_iteration_ms: 1.25K | tokens_per_sec: 838K | global_batch_size: 512 | lm_loss: 10.8\n");
  REQUIRE(nanotron);
  CHECK(nanotron->columns.items[0].text == "step_time_s");
  CHECK(nanotron->lines.at(0).items[0].text == "1.25");
  const auto nemo = steps_of_log("run.log",
                                 "Training epoch 0, iteration 10/99 | lr: 1e-05 | global_batch_size: 128 | "
                                 "reduced_train_loss: 11 | train_step_timing in s: 5.45 | consumed_samples: 1408\n");
  REQUIRE(nemo);
  CHECK(nemo->lines.at(0).items[0].text == "5.45");
}

TEST_CASE("a trainer of HuggingFace says the mean of its run, by the steps that it counts or by their rate", "[log]") {
  const auto seconds = [](const std::string& log) {
    const auto steps = steps_of_log("run.log", log);
    return steps ? std::stod(steps->lines.at(0).items.at(0).text) : 0;
  };
  const std::string end =
      "{'train_runtime': 1230.0, 'train_samples_per_second': 1.2, 'train_steps_per_second': 0.081, 'epoch': 1.0}\n";
  CHECK(seconds("{'loss': 2.3, 'epoch': 0.1}\n" + end) == Approx(1 / 0.081));
  CHECK(seconds("100%|##########| 100/100 [20:30<00:00, 12.3s/it]\n" + end) == Approx(12.3));
  const std::string state =
      "{\"global_step\": 400, \"log_history\": [{\"loss\": 2, \"step\": 10},\n  {\"epoch\": 1.0, \"step\": 100,\n"
      "   \"train_runtime\": 1230.0, \"train_steps_per_second\": 0.081}]}";
  CHECK(seconds(state) == Approx(12.3));
  CHECK_FALSE(steps_of_log("run.log", end)->mean_of.empty());
  // A rate of 0.012 may be 4 % off.
  CHECK_FALSE(steps_of_log("run.log", "{'train_runtime': 8300.0, 'train_steps_per_second': 0.012}\n"));
}

TEST_CASE("what no framework writes has no steps", "[log]") {
  CHECK_FALSE(steps_of_log("run.log", ""));
  CHECK_FALSE(steps_of_log("run.log", "tp,dp,step_time_s\n1,8,2\n"));
  CHECK_FALSE(steps_of_log("run.log", "iteration 3 | elapsed time per iteration (ms): nan\nstep: 3 tps: fast\n"));
}

}  // namespace
}  // namespace hdpsim
