#pragma once

#include <cstdint>
#include <vector>

#include "sim/relayout/relayout.h"

namespace hdpsim {

/// The tensor-parallel groups of a node.
struct NodeDivision {
  std::vector<TensorGroup> groups;
  std::vector<std::int64_t> suspended;
};

/// Divides the devices of a node, whose groups of tp are `groups`. Devices are put in order, slow ones last by rising
/// slowdown; all but the last tp form groups of tp, and the last tp form one of tp / 2^k for some k, and one of each
/// smaller power of two. Several slow devices may also stand elsewhere in the order, one after the other. Taken is
/// what computes most, with weights: the largest sum of 1 / (slowdown x TensorCut::weight). O(tp log tp).
[[nodiscard]] NodeDivision divided_node(const RelayoutJob& job, const std::vector<std::vector<std::int64_t>>& groups,
                                        const DeviceSlowdowns& slow);

/// A group of these devices: its cut follows from their number.
[[nodiscard]] TensorGroup group_of(const RelayoutJob& job, std::vector<std::int64_t> devices,
                                   const DeviceSlowdowns& slow);

/// How many times longer a device takes as layouts count it: 1 below the threshold.
[[nodiscard]] double counted_slowdown(const RelayoutJob& job, std::int64_t device, const DeviceSlowdowns& slow);

}  // namespace hdpsim
