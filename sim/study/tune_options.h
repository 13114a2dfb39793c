#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

/// What an hour of one GPU costs.
struct Price {
  double amount = 0;
  std::string currency;  ///< Three letters: "USD".
};

enum class TuneObjective {
  time,  ///< The shortest step.
  cost,  ///< The fewest GPU-hours a step.
};

/// `tune` of a study: what `hdpsim tune` searches, and for what.
struct TuneOptions {
  /// The values that one path of the study can have.
  struct Dimension {
    std::string path;  ///< `plans` stands for one plan, everything else is a path as in a sweep.
    std::vector<Value> values;
  };
  std::vector<Dimension> space;  ///< As given; what is left out has defaults of its own.
  TuneObjective objective = TuneObjective::time;
  std::optional<Price> price{};
  std::int64_t keep = 5;  ///< Candidates that are compared over all steps.
};

/// The keys of `tune`.
[[nodiscard]] const std::vector<KeyText>& tune_keys();

/// Reads `tune: {space: {mesh.tp: [1, 2], mesh.capacity: [8Ki, auto], cluster.gpus: [512, 1024], plans: [static]},
/// objective: time, price: 2.10 USD/GPU-hour, keep: 5}`. A space may hold paths below `mesh`, `cluster`, `kernels` and
/// `memory`, and `plans`: the work itself stays the same. All problems are reported.
[[nodiscard]] TuneOptions read_tune(const Value& tune, Diagnostics& diagnostics);

}  // namespace hdpsim
