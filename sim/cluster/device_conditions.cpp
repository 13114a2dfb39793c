#include "sim/cluster/device_conditions.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/random.h"
#include "sim/cluster/impl/index_range.h"
#include "sim/document/reader.h"

namespace hdpsim {
namespace {

constexpr double most_cv = 1;
constexpr double most_slowdown = 1000;

double read_cv(MapReader& noise, std::string_view of) {
  const Value* value = noise.find(of);
  if (value == nullptr) return 0;
  MapReader map(*value, fmt::format("the noise of a {}", of), noise.diagnostics());
  const double cv = map.required_in<double>("cv", {0, most_cv}).value_or(0);
  map.finish();
  return cv;
}

/// Reads one entry of the faults.
class FaultReader {
 public:
  FaultReader(const Value& entry, const ClusterSpec& cluster, std::int64_t steps, Diagnostics& diagnostics)
      : map_(entry, "a fault", diagnostics), cluster_(cluster), last_step_(steps - 1) {}

  Fault read() {
    Fault fault;
    read_devices(fault);
    read_steps(fault);
    fault.slowdown = map_.required_in<double>("slowdown", {1, most_slowdown}).value_or(1);
    map_.finish();
    return fault;
  }

 private:
  void read_devices(Fault& fault) {
    const Value* device = map_.find("device");
    const Value* node = map_.find("node");
    if ((device == nullptr) == (node == nullptr)) {
      if (map_.value().is_map()) map_.error("a fault is of a 'device' or of a 'node'", "write device: 17");
      return;
    }
    const std::int64_t unit = device != nullptr ? 1 : cluster_.devices_per_node;
    const Value& which = device != nullptr ? *device : *node;
    const auto range = parse_index_range(which.text);
    if (!which.is_scalar() || !range || range->step != 1 || !range->last) {
      map_.diagnostics().error(which.position, fmt::format("'{}' is no {}", which.text, device ? "device" : "node"),
                               "write 17 or 16-23");
      return;
    }
    const std::int64_t count = cluster_.devices / unit;
    if (cluster_.devices > 0 && *range->last >= count) {
      map_.diagnostics().error(which.position,
                               fmt::format("there is no {} {}", device ? "device" : "node", *range->last),
                               fmt::format("the cluster has {} to {}", 0, count - 1));
    }
    fault.first_device = range->first * unit;
    fault.last_device = (*range->last + 1) * unit - 1;
  }

  void read_steps(Fault& fault) {
    fault.from_step = read_step("from_step", 0);
    fault.to_step = read_step("to_step", last_step_);
    if (last_step_ < 0 || fault.to_step >= fault.from_step) return;
    map_.diagnostics().error(
        map_.value().find("to_step")->position,
        fmt::format("the fault ends in step {}, before it begins in step {}", fault.to_step, fault.from_step),
        "make 'to_step' at least 'from_step'");
  }

  std::int64_t read_step(std::string_view key, std::int64_t otherwise) {
    const auto step = map_.optional_in<std::int64_t>(key, {0, 1e9});
    if (!step || last_step_ < 0) return otherwise;
    if (*step <= last_step_) return *step;
    map_.diagnostics().error(map_.value().find(key)->position,
                             fmt::format("'{}' is {}, beyond the run's last step, {}", key, *step, last_step_),
                             "steps are counted from 0; simulate more with data.steps");
    return otherwise;
  }

  MapReader map_;
  const ClusterSpec& cluster_;
  std::int64_t last_step_;
};

// The variance of the logarithm of a log-normal variable with this coefficient of variation.
double log_variance(double cv) {
  return std::log1p(cv * cv);
}

void add_noise(const Noise& noise, std::int64_t step, std::vector<double>& factors) {
  const double device_variance = log_variance(noise.device_cv);
  const double step_variance = log_variance(noise.step_cv);
  const double variance = device_variance + step_variance;
  const double rung = std::sqrt(variance) / noise_steps;
  RandomStream devices(noise.seed, "noise of devices");
  RandomStream steps(noise.seed, "noise of steps", static_cast<std::uint64_t>(step));
  for (double& factor : factors) {
    const double drawn = std::sqrt(device_variance) * devices.normal() + std::sqrt(step_variance) * steps.normal();
    factor *= std::exp(rung * std::round(drawn / rung) - variance / 2);
  }
}

}  // namespace

Noise read_noise(const Value& value, Diagnostics& diagnostics) {
  MapReader map(value, "the noise", diagnostics);
  Noise noise;
  noise.device_cv = read_cv(map, "device");
  noise.step_cv = read_cv(map, "step");
  noise.seed = static_cast<std::uint64_t>(map.optional_in<std::int64_t>("seed", {0, 9e15}).value_or(1));
  map.finish();
  return noise;
}

std::vector<Fault> read_faults(const Value& value, const ClusterSpec& cluster, std::int64_t steps,
                               Diagnostics& diagnostics) {
  std::vector<Fault> faults;
  if (!value.is_sequence()) {
    diagnostics.error(value.position, fmt::format("the faults must be a list, found {}", kind_name(value.kind)),
                      "write faults: [{device: 17, from_step: 3, slowdown: 1.5}]");
    return faults;
  }
  for (const Value& entry : value.items) faults.push_back(FaultReader(entry, cluster, steps, diagnostics).read());
  return faults;
}

std::vector<double> fault_factors(const DeviceConditions& conditions, std::int64_t devices, std::int64_t step) {
  std::vector<double> factors(static_cast<std::size_t>(devices), 1.0);
  for (const Fault& fault : conditions.faults) {
    if (step < fault.from_step || step > fault.to_step) continue;
    for (std::int64_t device = fault.first_device; device <= fault.last_device; ++device) {
      factors.at(static_cast<std::size_t>(device)) *= fault.slowdown;
    }
  }
  return factors;
}

std::vector<double> time_factors(const DeviceConditions& conditions, std::int64_t devices, std::int64_t step) {
  std::vector<double> factors = fault_factors(conditions, devices, step);
  if (conditions.noise.any()) add_noise(conditions.noise, step, factors);
  return factors;
}

}  // namespace hdpsim
