#include "sim/roundpipe/round_robin.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

// Equal stages, each with a layer of its own, which nothing has to be copied for.
RoundRobinJob equal_job(std::int64_t gpus, std::int64_t stages, std::int64_t micro_batches, double seconds = 1) {
  RoundRobinJob job;
  for (std::int64_t i = 0; i < stages; ++i) job.stages.push_back({.seconds = seconds, .first = i, .layers = 1});
  job.micro_batches.resize(static_cast<std::size_t>(micro_batches));
  job.speeds.assign(static_cast<std::size_t>(gpus), 1.0);
  return job;
}

double sum(const RoundRobinStep& step, double StreamedTime::*part) {
  double total = 0;
  for (const StreamedTime& gpu : step.gpus) total += gpu.*part;
  return total;
}

TEST_CASE("N GPUs wait for N (N - 1) stages while a step fills and drains, whatever the stages", "[roundpipe]") {
  // Total time of all GPUs (M S + N (N - 1)) t, so that the bubble is N (N - 1) / (M S + N (N - 1)).
  for (const auto& [gpus, stages, micro_batches] :
       {std::tuple(8, 8, 16), {8, 16, 16}, {8, 24, 16}, {8, 32, 8}, {4, 12, 5}, {1, 7, 3}}) {
    const RoundRobinStep step = round_robin_step(equal_job(gpus, stages, micro_batches, 0.5));
    const double idle = gpus * (gpus - 1);
    CHECK(step.seconds * gpus == Approx(0.5 * (micro_batches * stages + idle)));
    CHECK(sum(step, &StreamedTime::pipeline) + sum(step, &StreamedTime::optimizer) == Approx(0.5 * idle));
  }
}

TEST_CASE("44 stages of 16 micro-batches leave 8 GPUs a bubble of 7.4 %, 8 stages one of 30.4 %", "[roundpipe]") {
  const auto bubble = [](std::int64_t stages) {
    const RoundRobinStep step = round_robin_step(equal_job(8, stages, 16));
    return 1 - sum(step, &StreamedTime::compute) / (8 * step.seconds);
  };
  CHECK(bubble(8) == Approx(0.304).margin(0.0005));
  CHECK(bubble(16) == Approx(0.179).margin(0.0005));
  // 44 is no multiple of 8: the stages of the last round that are missing are idle, too.
  CHECK(bubble(44) > 0.074);
}

TEST_CASE("an optimizer that is one step behind leaves no bubble, whether or not stages divide", "[roundpipe]") {
  for (const std::int64_t stages : {8, 11, 13, 44}) {
    RoundRobinJob job = equal_job(8, stages, 9);
    job.optimizer = HostOptimizer::one_step_behind;
    const RoundRobinStep step = round_robin_step(job);
    CHECK(step.seconds * 8 == Approx(9.0 * static_cast<double>(stages)));
    for (const StreamedTime& gpu : step.gpus) {
      CHECK(gpu.compute == Approx(step.seconds));
      CHECK(gpu.total() == Approx(step.seconds));
    }
  }
}

TEST_CASE("a step ends behind the update of its parameters", "[roundpipe]") {
  RoundRobinJob job = equal_job(2, 4, 2);
  for (StreamedStage& stage : job.stages) stage.update_seconds = 3;
  const RoundRobinStep step = round_robin_step(job);
  // (2 x 4 + 2) / 2 seconds, then four updates one after another.
  CHECK(step.seconds == Approx(5 + 4 * 3));
  CHECK(step.gpus[1].optimizer == Approx(12));
}

TEST_CASE("an update that takes longer than a step sets its pace where it is one step behind", "[roundpipe]") {
  RoundRobinJob job = equal_job(2, 4, 2);  // 4 seconds of compute
  job.optimizer = HostOptimizer::one_step_behind;
  for (StreamedStage& stage : job.stages) stage.update_seconds = 0.5;
  CHECK(round_robin_step(job).seconds == Approx(4));
  for (StreamedStage& stage : job.stages) stage.update_seconds = 3;
  CHECK(round_robin_step(job).seconds == Approx(12));
}

TEST_CASE("weights that take less time than the former stage's micro-batches are there in time, but for the first ones",
          "[roundpipe]") {
  RoundRobinJob job = equal_job(1, 6, 4);
  job.links = {.up = 10, .down = 10};
  for (StreamedStage& stage : job.stages) stage.weight_bytes = 39;  // 3.9 of 4 seconds
  CHECK(round_robin_step(job).seconds == Approx(3.9 + 6 * 4));
  // Longer ones follow each other without a gap: each begins when the stage before its former one is done.
  for (StreamedStage& stage : job.stages) stage.weight_bytes = 50;
  CHECK(round_robin_step(job).seconds == Approx(6 * 5 + 4));
}

TEST_CASE("GPUs behind one PCIe switch share its rate", "[roundpipe]") {
  RoundRobinJob job = equal_job(2, 2, 2);
  for (StreamedStage& stage : job.stages) stage.weight_bytes = 10;
  job.links = {.up = 10, .down = 10, .switch_rate = 10, .gpus_per_switch = 1};
  CHECK(round_robin_step(job).seconds == Approx(1 + 3));  // each copies a second; (2 x 2 + 2) / 2 = 3
  job.links.gpus_per_switch = 2;
  CHECK(round_robin_step(job).seconds == Approx(2 + 3));
}

TEST_CASE("an output goes to the host and from there to the next GPU", "[roundpipe]") {
  RoundRobinJob job = equal_job(2, 2, 1);
  job.stages[0].output_bytes = 20;
  job.stages[1].input_bytes = 30;
  job.links = {.up = 10, .down = 10};
  const RoundRobinStep step = round_robin_step(job);
  CHECK(step.seconds == Approx(1 + 2 + 3 + 1));
  CHECK(step.gpus[1].pipeline == Approx(1));  // until the input is computed
  CHECK(step.gpus[1].copies == Approx(5));
  CHECK(step.passes[1].begin == Approx(6));
}

TEST_CASE("an input goes before the weights of the next stage", "[roundpipe]") {
  // On one GPU the second micro-batch's input, 1 second, is copied while the first one computes, however large the
  // weights of the next stage are.
  RoundRobinJob job = equal_job(1, 2, 2, 2);
  job.links = {.up = 10, .down = 10};
  job.stages[0].input_bytes = 10;
  job.stages[1].weight_bytes = 100;
  const RoundRobinStep step = round_robin_step(job);
  CHECK(step.passes[0].end == Approx(3).epsilon(1e-4));
  CHECK(step.passes[1].begin == Approx(3).epsilon(1e-4));
}

TEST_CASE("copies in both directions at once are slower where they meet", "[roundpipe]") {
  // A byte down takes half a byte's time up: weights of 20 at 10 B/s beside gradients.
  RoundRobinJob job = equal_job(1, 2, 1);
  job.links = {.up = 10, .down = 10};
  for (StreamedStage& stage : job.stages) stage = {.seconds = 1, .weight_bytes = 20, .gradient_bytes = 20};
  job.stages[1].first = 1;
  job.stages[0].layers = job.stages[1].layers = 1;
  const double apart = round_robin_step(job).seconds;
  job.links.down_meets_up = 1;
  CHECK(round_robin_step(job).seconds > apart);
}

TEST_CASE("a slow GPU makes every GPU wait", "[roundpipe]") {
  RoundRobinJob job = equal_job(2, 8, 4);
  job.speeds[1] = 0.5;
  job.optimizer = HostOptimizer::one_step_behind;
  // It has half of the stages, in twice the time.
  CHECK(round_robin_step(job).seconds == Approx(4.0 * 4 / 0.5));
}

TEST_CASE("a longer micro-batch takes longer in every stage", "[roundpipe]") {
  RoundRobinJob job = equal_job(1, 3, 2);
  job.micro_batches = {{.time = 0.5}, {.time = 1.5}};
  CHECK(round_robin_step(job).seconds == Approx(3 * (0.5 + 1.5)));
}

}  // namespace
}  // namespace hdpsim
