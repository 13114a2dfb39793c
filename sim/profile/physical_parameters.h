#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/profile/device_profile.h"

namespace hdpsim {

/// How believed values of a parameter spread around the start, and what its coordinate in a fit is.
enum class PriorShape {
  factor,              ///< Log-normal: the coordinate is the logarithm of value / start.
  amount,              ///< Normal, in the parameter's own unit.
  of_the_step,         ///< Normal and never below zero, in shares of the rows' median step.
  of_the_micro_batch,  ///< The same in shares of the rows' median time of a micro-batch.
};

/// A physical figure of a profile to which measured steps can be fitted. The only table of these is fit_parameters().
struct PhysicalParameter {
  std::string_view name;
  std::string_view unit;     ///< "x" (of the profile's figure), "s".
  std::string_view meaning;  ///< What it changes, in a sentence.
  std::string_view prior;    ///< What is believed of it and why, in words.
  /// The families of costs whose errors are those of this parameter.
  std::vector<CostFamily> families{};
  PriorShape shape = PriorShape::factor;
  double width = 0;  ///< Standard deviation of the prior, by its shape.
  /// The range of values: of a factor relative to the start, otherwise absolute.
  double least = 0;
  double most = 0;
  /// The value in a profile; a factor of figures begins at 1. Empty if the profile lacks what it changes.
  std::optional<double> (*start)(const DeviceProfile&) = nullptr;
  /// The largest value that the physics of the profile's device allows: rates end at the data sheet's peak. Null: none.
  double (*ceiling)(const DeviceProfile&) = nullptr;
  /// Changes the profile to the value. Sources of changed figures say so.
  void (*apply)(DeviceProfile&, double value) = nullptr;
};

/// host_issue, gemm, attention, memory_bandwidth, link_in_node, link_between_nodes, per_step, per_micro_batch,
/// kernel_slowdown.
[[nodiscard]] const std::vector<PhysicalParameter>& fit_parameters();
[[nodiscard]] std::vector<std::string> fit_parameter_names();
/// The parameter of that name; null if there is none.
[[nodiscard]] const PhysicalParameter* find_fit_parameter(std::string_view name);
/// The parameter of that name, which must be one (checked).
[[nodiscard]] const PhysicalParameter& fit_parameter(std::string_view name);

/// The value of the parameter of this name to which a profile was fitted; 1 if it was not.
[[nodiscard]] double fitted_value(const Provenance& provenance, std::string_view parameter);

}  // namespace hdpsim
