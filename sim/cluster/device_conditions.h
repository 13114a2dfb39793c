#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/id.h"
#include "sim/cluster/cluster.h"
#include "sim/document/key.h"

namespace hdpsim {

/// The variation between devices of one kind. The time of a device's kernels is multiplied by log-normal factors of
/// mean 1 with these coefficients of variation (standard deviation over mean): one for each device, the same in all
/// steps, and one for each device and step.
struct Noise {
  double device_cv = 0;
  double step_cv = 0;
  /// The spread of devices that no device is drawn from: all compute like the expected slowest of the run. Empty: as
  /// the profile says.
  std::optional<double> spread = {};
  std::uint64_t seed = 1;
  [[nodiscard]] bool any() const { return device_cv > 0 || step_cv > 0; }
};

/// A straggler: devices whose kernels take longer for some steps of a run.
struct Fault {
  std::int64_t first_device = 0;
  std::int64_t last_device = 0;
  std::int64_t from_step = 0;
  std::int64_t to_step = 0;  ///< The last step, included.
  double slowdown = 1;       ///< How many times longer; at least 1.
};

/// The conditions of devices in each step of a run, besides what the cluster says of them.
struct DeviceConditions {
  Noise noise;
  std::vector<Fault> faults;
  [[nodiscard]] bool any() const { return noise.any() || !faults.empty(); }
};

/// What the noise and the faults of a study look like.
[[nodiscard]] KeyShape noise_shape();
[[nodiscard]] KeyShape faults_shape();

/// Reads `{device: {cv: 0.02}, step: {cv: 0.01}, seed: 1}` or `{spread: 0.01}`, each key of which may be omitted.
/// Devices that are drawn have no spread besides. All problems are reported.
[[nodiscard]] Noise read_noise(const Value& value, Diagnostics& diagnostics);

/// Reads a list of `{device: 17, from_step: 3, to_step: 9, slowdown: 1.5}`. `device` is `17` or `16-23`; `node: 2`
/// means all devices of a node. Without from_step the fault begins with the first step, without to_step until
/// the last. All problems are reported: devices that do not exist, steps beyond the run's `steps`, factors below 1.
[[nodiscard]] std::vector<Fault> read_faults(const Value& value, const ClusterSpec& cluster, std::int64_t steps,
                                             Diagnostics& diagnostics);

/// By device of the cluster: how many times longer its kernels take in a step than the cluster says. The noise is
/// quantized to `noise_steps` levels per standard deviation, so that the devices of a cluster of any size have at most
/// a few hundred speeds and a ring is computed once per speed, not once per rank; rounding changes no factor by more
/// than 1 / (2 noise_steps) of a standard deviation. O(devices + devices at fault); the result for a step does not
/// depend on earlier calls.
[[nodiscard]] std::vector<double> time_factors(const DeviceConditions& conditions, std::int64_t devices,
                                               std::int64_t step);
inline constexpr double noise_steps = 16;

/// The same without noise, which nobody can foresee: what a planner may know.
[[nodiscard]] std::vector<double> fault_factors(const DeviceConditions& conditions, std::int64_t devices,
                                                std::int64_t step);

}  // namespace hdpsim
