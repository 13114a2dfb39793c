#pragma once

#include <map>
#include <vector>

#include "sim/model/optimizer_work.h"
#include "sim/network/cluster_links.h"
#include "sim/tasks/slice_data.h"

namespace hdpsim {

/// The parameters of a plan by the devices that hold them: the parameter device groups of Spindle.
class ParameterGroups {
 public:
  /// The plan's slices are placed. `data` must outlive it.
  ParameterGroups(const SliceData& data, const TaskPlan& plan);

  /// Parameters on each of these devices.
  [[nodiscard]] const std::map<std::vector<DeviceId>, std::int64_t>& groups() const { return groups_; }
  /// Until all gradients are summed (ZeRO: scattered, and the updated parameters gathered). Groups of one size and as
  /// many parameters without a common device run as one collective; among others the largest come first, and those with
  /// a common device follow each other.
  [[nodiscard]] double sum_seconds(const ClusterLinks& links) const;
  /// Of the device that updates most.
  [[nodiscard]] double optimizer_seconds() const;
  /// Bytes of parameters, gradients and optimizer on a device.
  [[nodiscard]] double state_bytes(DeviceId device) const { return state_bytes_[device.index()]; }

 private:
  const SliceData& data_;
  std::map<std::vector<DeviceId>, std::int64_t> groups_;
  std::vector<double> state_bytes_;        // by device
  std::vector<OptimizerShare> optimized_;  // by device
};

}  // namespace hdpsim
