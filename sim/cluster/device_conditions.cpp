#include "sim/cluster/device_conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/random.h"
#include "sim/cluster/node_list.h"
#include "sim/document/key_table.h"

namespace hdpsim {
namespace {

constexpr double most_cv = 1;
constexpr double most_slowdown = 1000;
constexpr double most_slowdown_together = 1e6;

// The noise of devices, or that of steps: `what` names it.
KeyTable<double> cv_keys(std::string what) {
  KeyTable<double> keys(std::move(what));
  keys.number("cv", {0, most_cv}, [](auto& cv) -> auto& { return cv; },
              "the coefficient of variation: standard deviation over mean", {.required = true});
  return keys;
}

const KeyTable<Noise>& noise_table() {
  static const KeyTable<double> devices = cv_keys("the noise of a device");
  static const KeyTable<double> steps = cv_keys("the noise of a step");
  static const auto made = [] {
    KeyTable<Noise> noise("the noise");
    noise.map("device", devices, at(&Noise::device_cv), "of each device, the same in all steps");
    noise.map("step", steps, at(&Noise::step_cv), "of each device, anew in every step");
    noise.number("spread", {0, most_cv}, at(&Noise::spread),
                 "the coefficient of variation of devices of one type, in place of `device`: products and attention of "
                 "all devices take as long as on the expected slowest of the run; 0: devices are equal",
                 {.otherwise = "the profile's, or 0 with `device`", .mechanism = "noise", .off = "0"});
    noise.count("seed", {0, 9e15}, at(&Noise::seed), "the seed of what is drawn");
    return noise;
  }();
  return made;
}

/// A fault while it is read.
struct FaultText {
  Fault fault;
  std::optional<std::int64_t> to_step;
};

void read_nothing(const Value&, FaultText&, Diagnostics&) {}

const KeyTable<FaultText>& fault_table() {
  static const auto made = [] {
    KeyTable<FaultText> keys("a fault");
    const KeyShape which = either_shape({shape_of(KeyShape::Kind::count), shape_of(KeyShape::Kind::text)});
    keys.add({"device", which, "", "`17` or `16-23`; a fault names these or a node", {}}, read_nothing);
    keys.add({"node", which, "", "all devices of a node, or of some", {}}, read_nothing);
    keys.count("from_step", {0, 1e9}, at(&FaultText::fault, &Fault::from_step), "its first step");
    keys.count("to_step", {0, 1e9}, at(&FaultText::to_step), "its last step", {.otherwise = "the run's last"});
    keys.number("slowdown", {1, most_slowdown}, at(&FaultText::fault, &Fault::slowdown),
                "how many times longer kernels take", {.required = true});
    return keys;
  }();
  return made;
}

/// Reads one entry of the faults.
class FaultReader {
 public:
  FaultReader(const Value& entry, const ClusterSpec& cluster, std::int64_t steps, Diagnostics& diagnostics)
      : entry_(entry), diagnostics_(diagnostics), cluster_(cluster), last_step_(steps - 1) {}

  Fault read() {
    FaultText text;
    (void)fault_table().read(entry_, text, diagnostics_);
    Fault fault = text.fault;
    fault.to_step = text.to_step.value_or(last_step_);
    if (entry_.is_map()) read_devices(fault);
    if (last_step_ >= 0) check_steps(fault);
    return fault;
  }

 private:
  void read_devices(Fault& fault) {
    const Value* device = given("device");
    const Value* node = given("node");
    if ((device == nullptr) == (node == nullptr)) {
      diagnostics_.error(entry_.position, "a fault is of a 'device' or of a 'node'", "write device: 17");
      return;
    }
    const std::int64_t unit = device != nullptr ? 1 : cluster_.devices_per_node;
    const Value& which = device != nullptr ? *device : *node;
    const auto range = parse_index_range(which.text);
    if (!which.is_scalar() || !range || range->step != 1 || !range->last) {
      diagnostics_.error(which.position, fmt::format("'{}' is no {}", which.text, device ? "device" : "node"),
                         "write 17 or 16-23");
      return;
    }
    const std::int64_t count = cluster_.devices / unit;
    if (cluster_.devices > 0 && *range->last >= count) {
      diagnostics_.error(which.position, fmt::format("there is no {} {}", device ? "device" : "node", *range->last),
                         fmt::format("the cluster has {} to {}", 0, count - 1));
    }
    fault.first_device = range->first * unit;
    fault.last_device = (*range->last + 1) * unit - 1;
  }

  void check_steps(Fault& fault) {
    check_step("from_step", fault.from_step, 0);
    check_step("to_step", fault.to_step, last_step_);
    if (fault.to_step >= fault.from_step) return;
    diagnostics_.error(
        entry_.find("to_step")->position,
        fmt::format("the fault ends in step {}, before it begins in step {}", fault.to_step, fault.from_step),
        "make 'to_step' at least 'from_step'");
  }

  void check_step(std::string_view key, std::int64_t& step, std::int64_t otherwise) {
    if (step <= last_step_) return;
    diagnostics_.error(entry_.find(key)->position,
                       fmt::format("'{}' is {}, beyond the run's last step, {}", key, step, last_step_),
                       "steps are counted from 0; simulate more with data.steps");
    step = otherwise;
  }

  const Value* given(std::string_view key) const {
    const Value* found = entry_.find(key);
    return found == nullptr || found->is_null() ? nullptr : found;
  }

  const Value& entry_;
  Diagnostics& diagnostics_;
  const ClusterSpec& cluster_;
  std::int64_t last_step_;
};

// How much faults of one device slow it in a step.
double slowdown_in(std::int64_t step, const std::vector<Fault>& faults, const std::vector<std::size_t>& of_device) {
  double slowdown = 1;
  for (const std::size_t i : of_device) {
    if (faults[i].from_step <= step && step <= faults[i].to_step) slowdown *= faults[i].slowdown;
  }
  return slowdown;
}

// The first fault, by its first device, at which a device is slowed too much; empty if none is. Devices are slowed most
// where a fault begins, in steps and in devices. O(faults) for each that shares its first device.
std::optional<std::size_t> too_slow(const std::vector<Fault>& faults) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (faults[i].slowdown > 1) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return faults[a].first_device < faults[b].first_device; });
  std::vector<std::size_t> here;
  for (const std::size_t i : order) {
    std::erase_if(here, [&](std::size_t other) { return faults[other].last_device < faults[i].first_device; });
    here.push_back(i);
    const auto is_too_slow = [&](std::size_t other) {  // in the first step of this fault or of one that begins in it
      const std::int64_t step = faults[other].from_step;
      const bool begins_in_it = other == i || (step > faults[i].from_step && step <= faults[i].to_step);
      return begins_in_it && slowdown_in(step, faults, here) > most_slowdown_together;
    };
    if (std::any_of(here.begin(), here.end(), is_too_slow)) return i;
  }
  return std::nullopt;
}

// The variance of the logarithm of a log-normal variable with this coefficient of variation.
double log_variance(double cv) {
  return std::log1p(cv * cv);
}

void add_noise(const Noise& noise, std::int64_t step, std::vector<double>& factors) {
  const double device_variance = log_variance(noise.device_cv);
  const double step_variance = log_variance(noise.step_cv);
  const double variance = device_variance + step_variance;
  const double rung = std::sqrt(variance) / noise_steps;
  if (!(rung > 0)) return;  // no noise, or so little that its square is no number
  RandomStream devices(noise.seed, "noise of devices");
  RandomStream steps(noise.seed, "noise of steps", static_cast<std::uint64_t>(step));
  for (double& factor : factors) {
    const double drawn = std::sqrt(device_variance) * devices.normal() + std::sqrt(step_variance) * steps.normal();
    factor *= std::exp(rung * std::round(drawn / rung) - variance / 2);
  }
}

}  // namespace

KeyShape noise_shape() {
  return map_shape(noise_table().texts());
}

KeyShape faults_shape() {
  return list_shape(map_shape(fault_table().texts()));
}

Noise read_noise(const Value& value, Diagnostics& diagnostics) {
  Noise noise;
  (void)noise_table().read(value, noise, diagnostics);
  if (noise.device_cv > 0 && noise.spread.value_or(0) > 0) {
    diagnostics.error(value.find("spread")->position, "'device' draws the devices that 'spread' takes the slowest of",
                      "state one of the two");
  }
  if (value.is_map() && value.find("device") != nullptr && !noise.spread) noise.spread = 0;
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
  if (const auto which = too_slow(faults)) {
    diagnostics.error(value.items[*which].position,
                      fmt::format("faults of the same devices and steps slow them more than {:.0e} times together",
                                  most_slowdown_together),
                      "leave some of them out");
  }
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
