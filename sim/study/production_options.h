#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/document/document.h"
#include "sim/document/key.h"

namespace hdpsim {

/// What a job does about a device that it has found slow.
enum class StragglerAnswer {
  none,      ///< It trains on as before.
  replan,    ///< Its policies plan for the speeds that devices have; nothing moves.
  relayout,  ///< Pipelines get other groups, stages, layers and micro-batches (Malleus); states move.
  drop,      ///< It restarts without the device's node, on fewer ranks, until the device is as before.
  replace,   ///< It writes a checkpoint and restarts with a spare node in place of the device's.
};

/// Devices that become slow for a while, each by itself.
struct Stragglers {
  /// A range of a quantity whose logarithm is uniformly distributed.
  struct LogRange {
    double from = 0;
    double to = 0;
  };
  double device_mtbf_s = 0;  ///< Mean time between two slow spells of a device. Exponentially distributed.
  LogRange slowdown{};       ///< How many times longer kernels take.
  LogRange duration_s{};
  double threshold = 1.2;   ///< Devices with a smaller slowdown are not found.
  std::int64_t detect = 3;  ///< Steps with a device in another condition until it is known.
  StragglerAnswer answer = StragglerAnswer::none;
  /// How many batches are simulated in each state of the devices; empty: all. See make_simulated_times().
  std::optional<std::int64_t> batches{};
  double stop_s = 0;  ///< How long the job stands still for the answer, without the time in which states move.
};

/// `production` of a study: what happens to a job in hours.
struct ProductionOptions {
  double time_s = 0;
  std::uint64_t seed = 1;
  std::optional<Stragglers> stragglers{};
};

/// The keys of `production`.
[[nodiscard]] const std::vector<KeyText>& production_keys();

/// Reads `{time: 24 h, seed: 1, stragglers: {device_mtbf: 2 years, slowdown: {from: 1.2, to: 4}, duration: {from: 1
/// min, to: 10 h}, threshold: 1.2, detect: 3, answer: replan, stop: 5 s}}`. All problems are reported.
[[nodiscard]] ProductionOptions read_production(const Value& value, Diagnostics& diagnostics);

}  // namespace hdpsim
