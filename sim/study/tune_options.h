#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

/// The price of one GPU-hour.
struct Price {
  double amount = 0;
  std::string currency;  ///< Three letters: "USD".
};

enum class TuneObjective {
  time,  ///< The shortest step.
  cost,  ///< The fewest GPU-hours per step.
};

/// `tune` of a study: the search space and objective of `hdpsim tune`.
struct TuneOptions {
  /// The values that one path of the study can have.
  struct Dimension {
    std::string path;  ///< `plans` for the one plan; otherwise a path as in a sweep.
    std::vector<Value> values;
  };
  std::vector<Dimension> space;  ///< As stated; missing paths have defaults of their own.
  TuneObjective objective = TuneObjective::time;
  std::optional<Price> price{};
  std::int64_t keep = 5;  ///< Number of candidates that are compared over all steps.
};

/// The keys of `tune`.
[[nodiscard]] const std::vector<KeyText>& tune_keys();

/// Reads `tune: {space: {mesh.tp: [1, 2], mesh.capacity: [8Ki, auto], cluster.gpus: [512, 1024], plans: [static]},
/// objective: time, price: 2.10 USD/GPU-hour, keep: 5}`. A space may hold paths below `mesh`, `cluster`, `kernels` and
/// `memory`, and `plans`: the work itself stays the same. All problems are reported.
[[nodiscard]] TuneOptions read_tune(const Value& tune, Diagnostics& diagnostics);

}  // namespace hdpsim
