#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/base/units.h"
#include "sim/network/cluster_links.h"
#include "sim/tasks/slice_data.h"

namespace hdpsim {

/// What a step takes, in seconds one after another.
struct TaskStep {
  double forward = 0;
  double backward = 0;
  double messages = 0;   ///< Between waves, both ways.
  double gradients = 0;  ///< Sums among the devices that hold the same parameters, with the gather of what ZeRO shards.
  double optimizer = 0;
  double idle = 0;         ///< Share of the devices' time in forward and backward.
  std::int64_t waves = 0;  ///< Of all lanes.
  Bytes memory;            ///< Of the fullest device.
  bool fits = true;

  [[nodiscard]] double passes() const { return forward + backward; }
  [[nodiscard]] double total() const { return passes() + messages + gradients + optimizer; }
};

/// The step of a plan whose slices are placed.
///
/// A wave lasts as long as its longest slice, forward and backward, and begins when all messages into it have arrived.
/// These begin together and share the links max-min fairly. A round lasts as long as its slowest lane; messages of
/// different lanes do not meet. Behind the last round every parameter's gradient is summed over all devices that hold
/// it (all that any task lets touch it), as one collective for all parameters with the same devices. Collectives that
/// share a device follow each other; others do not slow each other down. Then each device updates its share.
class TaskStepper {
 public:
  /// `data` must outlive it.
  explicit TaskStepper(const SliceData& data);

  /// `costs` has the passes of each slice by run and devices.
  using SliceSeconds = std::function<OperatorSeconds(const TaskSlice&)>;
  [[nodiscard]] TaskStep step(const TaskPlan& plan, const SliceSeconds& operator_seconds) const;

  /// The time of messages that begin together.
  [[nodiscard]] double message_seconds(const std::vector<TaskMessage>& messages) const;

 private:
  const SliceData& data_;
  ClusterLinks message_links_;
  ClusterLinks links_;  ///< At full rates, for collectives.
};

}  // namespace hdpsim
