#include "sim/study/replay_options.h"

#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

constexpr double most_steps = 1e6;
constexpr double most_worst = 100;  // each is simulated again

const KeyTable<ReplayOptions>& replay_table() {
  static const auto made = [] {
    KeyTable<ReplayOptions> keys("the replay");
    keys.count("window", {1, most_steps}, at(&ReplayOptions::window), "steps that are looked at together",
               {.unit = "steps", .otherwise = "a fiftieth of the run, at least 10"});
    keys.number(
        "threshold", {0, 1000}, at(&ReplayOptions::threshold),
        "a plan has lost its lead where it is less than this many times as fast as the baseline, over a window");
    keys.count("worst", {0, most_worst}, at(&ReplayOptions::worst), "slowest steps of each plan that are explained",
               {.unit = "steps"});
    return keys;
  }();
  return made;
}

}  // namespace

const std::vector<KeyText>& replay_keys() {
  return replay_table().texts();
}

ReplayOptions read_replay(const Value& replay, Diagnostics& diagnostics) {
  ReplayOptions options;
  (void)replay_table().read(replay, options, diagnostics);
  return options;
}

}  // namespace hdpsim
