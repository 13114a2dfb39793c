#include "sim/import/training_run.h"

#include <fmt/format.h>

#include "sim/base/division.h"

namespace hdpsim {
namespace {

constexpr double most_step_tokens = 1e12;  // of data.tokens_per_step

}  // namespace

void put(Value& map, std::string_view key, std::int64_t value) {
  map.set(key, Value::scalar(std::to_string(value)));
}

void put(Value& map, std::string_view key, const std::string& value) {
  map.set(key, Value::scalar(value));
}

void put_truth(Value& map, std::string_view key, bool value) {
  map.set(key, Value::scalar(value ? "true" : "false"));
}

std::int64_t bounded_product(std::initializer_list<std::int64_t> factors) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) result = result > most / factor ? most : result * factor;
  return result;
}

std::int64_t capacity_of(const TrainingRun& run) {
  return run.capacity.value_or(divided(run.sequence * run.micro_batch, run.cp));
}

void check_divisions(const TrainingRun& run, const RunWords& words, Diagnostics& diagnostics) {
  const std::int64_t replica = run.tp * run.pp * run.cp;
  if (run.gpus % replica != 0) {
    diagnostics.error(words.devices, fmt::format("{} GPUs are no multiple of {} = {} x {} x {}, {}", run.gpus, replica,
                                                 run.tp, run.pp, run.cp, words.degrees));
    return;
  }
  const double step_tokens = static_cast<double>(run.global_batch) * static_cast<double>(run.sequence);
  if (step_tokens > most_step_tokens) {
    diagnostics.error(words.batch, fmt::format("a step of {:g} tokens, at most {:g} can be simulated", step_tokens,
                                               most_step_tokens));
    return;
  }
  const std::int64_t at_once = run.gpus / replica * run.micro_batch;
  if (run.global_batch % at_once != 0) {
    diagnostics.error(words.batch,
                      fmt::format("a batch of {} sequences is no multiple of {}: {} of {} in each of {} replicas",
                                  run.global_batch, at_once, words.micro_batch, run.micro_batch, run.gpus / replica));
  }
  if (run.cp > 1 && run.sequence % (2 * run.cp) != 0) {
    diagnostics.error(words.context_parallel,
                      fmt::format("a sequence of {} tokens cannot be cut into {} equal parts, two for each of {} ranks",
                                  run.sequence, 2 * run.cp, run.cp));
  }
}

}  // namespace hdpsim
