#include "sim/study/replay_options.h"

#include "sim/document/reader.h"

namespace hdpsim {
namespace {

constexpr double most_steps = 1e6;
constexpr double most_worst = 100;  // each is simulated once more

}  // namespace

ReplayOptions read_replay(const Value& replay, Diagnostics& diagnostics) {
  MapReader map(replay, "the replay", diagnostics);
  ReplayOptions options;
  options.window = map.optional_in<std::int64_t>("window", {1, most_steps});
  options.threshold = map.optional_in<double>("threshold", {0, 1000}).value_or(options.threshold);
  options.worst = map.optional_in<std::int64_t>("worst", {0, most_worst}).value_or(options.worst);
  map.finish();
  return options;
}

}  // namespace hdpsim
