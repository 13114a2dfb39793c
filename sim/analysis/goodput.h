#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/units.h"

namespace hdpsim {

/// Failures of nodes and their cost. Any node's failure stops the whole job, which goes back to its last checkpoint.
/// Seconds are plain numbers because the time between failures of a node exceeds a Duration.
struct FailureModel {
  double node_mtbf_s = 0;   ///< Mean time between failures of one node; positive. Exponentially distributed.
  double checkpoint_s = 0;  ///< Time of a checkpoint, during which no step runs; positive.
  double restart_s = 0;     ///< Time from a failure until steps run again; failures may strike meanwhile.
  /// Time between two checkpoints; Daly's optimum if empty.
  std::optional<double> interval_s{};
  std::uint64_t seed = 1;
};

/// The part of a job's time that makes progress.
struct Goodput {
  double mtbf_s = 0;             ///< Mean time between failures of the job: a node's, divided by the number of nodes.
  double young_s = 0;            ///< Optimal time between checkpoints, first order: young_interval().
  double daly_s = 0;             ///< The same, higher order: daly_interval().
  std::int64_t every_steps = 1;  ///< Steps between two checkpoints: the interval in whole steps, at least 1.
  double share = 0;              ///< Share of time in steps that are not lost: expected_goodput() at that interval.
  double simulated = 0;          ///< The same from a simulation of random failures, ...
  double simulated_error = 0;    ///< ... and its standard error.
};

/// Young (1974, CACM 17(9)): sqrt(2 delta M) seconds of work between checkpoints of delta seconds at M between
/// failures.
[[nodiscard]] double young_interval(double checkpoint_s, double mtbf_s);

/// Daly (2006, Future Generation Computer Systems 22(3), eq. 37): sqrt(2 delta M) (1 + sqrt(delta / 2M) / 3 +
/// delta / 2M / 9) - delta for delta < 2M, otherwise M.
[[nodiscard]] double daly_interval(double checkpoint_s, double mtbf_s);

/// Daly's complete model (the same paper): work of T takes M e^(R/M) (e^((tau + delta)/M) - 1) T / tau with
/// checkpoints of delta after every tau of work and restarts of R. Returns T over that.
[[nodiscard]] double expected_goodput(const FailureModel& model, double mtbf_s, double interval_s);

/// The goodput of a job of `nodes` nodes whose steps take `step`. The simulation draws the time to every failure from a
/// stream of its own and runs 100,000 attempts at an interval; the spread of 100 parts of it gives the error. Where a
/// restart takes more than three times the mean time between failures, nothing is drawn: `simulated` is then `share`,
/// without error.
[[nodiscard]] Goodput goodput(const FailureModel& model, std::int64_t nodes, Duration step);

}  // namespace hdpsim
