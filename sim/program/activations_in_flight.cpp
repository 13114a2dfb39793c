#include "sim/program/activations_in_flight.h"

#include <algorithm>

namespace hdpsim {
namespace {

std::int64_t counted(const Schedule& schedule, std::int64_t stage, std::int64_t micro_batches) {
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const SlotPass& pass : schedule.order(stage, micro_batches)) {
    if (keeps_activations(pass.kind)) ++held;
    most = std::max(most, held);
    if (releases_activations(pass.kind)) --held;
  }
  return most;
}

// After this number of micro-batches a schedule that holds a bounded number has begun to release them on every stage.
std::int64_t enough_micro_batches(const Schedule& schedule) {
  return 2 * schedule.stages();
}

}  // namespace

std::vector<std::int64_t> most_chunks_in_flight(const Schedule& schedule, std::int64_t micro_batches) {
  const std::int64_t enough = enough_micro_batches(schedule);
  const std::int64_t counts = std::min(micro_batches, enough);
  const bool grows = micro_batches > enough && holds_all_micro_batches(schedule);
  std::vector<std::int64_t> most;
  for (std::int64_t stage = 0; stage < schedule.stages(); ++stage) {
    const std::int64_t held = counted(schedule, stage, counts);
    most.push_back(grows ? held / counts * micro_batches : held);  // all chunks of each micro-batch
  }
  return most;
}

bool holds_all_micro_batches(const Schedule& schedule) {
  const std::int64_t enough = enough_micro_batches(schedule);
  return schedule.stages() > 1 && counted(schedule, 0, 2 * enough) > counted(schedule, 0, enough);
}

}  // namespace hdpsim
