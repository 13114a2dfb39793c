#include "sim/relayout/node_division.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace hdpsim {
namespace {

using Devices = std::vector<std::int64_t>;

/// The devices of a node: those that are not slow, beginning with the groups without a slow one, and the slow ones by
/// rising slowdown.
struct NodeDevices {
  Devices usual;
  Devices slow;
};

NodeDevices sorted_devices(const RelayoutJob& job, const std::vector<Devices>& groups, const DeviceSlowdowns& slow) {
  NodeDevices sorted;
  Devices beside_slow;
  for (const Devices& group : groups) {
    const auto is_slow = [&](std::int64_t device) { return counted_slowdown(job, device, slow) > 1; };
    const bool has_slow = std::any_of(group.begin(), group.end(), is_slow);
    for (const std::int64_t device : group) {
      (is_slow(device) ? sorted.slow : has_slow ? beside_slow : sorted.usual).push_back(device);
    }
  }
  sorted.usual.insert(sorted.usual.end(), beside_slow.begin(), beside_slow.end());
  std::stable_sort(sorted.slow.begin(), sorted.slow.end(), [&](std::int64_t a, std::int64_t b) {
    return counted_slowdown(job, a, slow) < counted_slowdown(job, b, slow);
  });
  return sorted;
}

NodeDivision division(const RelayoutJob& job, const Devices& order, std::size_t largest_of_last,
                      const DeviceSlowdowns& slow) {
  NodeDivision divided;
  const auto tp = static_cast<std::size_t>(job.tp);
  std::size_t next = 0;
  const auto take = [&](std::size_t size) {
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(next);
    divided.groups.push_back(group_of(job, Devices(begin, begin + static_cast<std::ptrdiff_t>(size)), slow));
    next += size;
  };
  while (next + tp < order.size()) take(tp);
  for (std::size_t size = largest_of_last; size > 0 && next + size <= order.size(); size /= 2) take(size);
  divided.suspended.assign(order.begin() + static_cast<std::ptrdiff_t>(next), order.end());
  return divided;
}

double worth(const RelayoutJob& job, const NodeDivision& division) {
  double sum = 0;
  for (const TensorGroup& group : division.groups) {
    sum += 1 / (group.slowdown * job.cuts[static_cast<std::size_t>(group.cut)].weight);
  }
  return sum;
}

}  // namespace

double counted_slowdown(const RelayoutJob& job, std::int64_t device, const DeviceSlowdowns& slow) {
  const auto found = slow.find(device);
  return found == slow.end() || found->second < job.threshold ? 1 : found->second;
}

TensorGroup group_of(const RelayoutJob& job, Devices devices, const DeviceSlowdowns& slow) {
  TensorGroup group{std::move(devices)};
  while ((job.tp >> group.cut) > std::ssize(group.devices)) ++group.cut;
  double slowest = 1;
  for (const std::int64_t device : group.devices) slowest = std::max(slowest, counted_slowdown(job, device, slow));
  group.slowdown = job.cuts[static_cast<std::size_t>(group.cut)].with_slowest(slowest);
  return group;
}

NodeDivision divided_node(const RelayoutJob& job, const std::vector<Devices>& groups, const DeviceSlowdowns& slow) {
  const auto [usual, slow_ones] = sorted_devices(job, groups, slow);
  NodeDivision best;
  double most = 0;
  const std::size_t shifts = slow_ones.size() > 1 ? usual.size() : 0;
  for (std::size_t shift = 0; shift <= shifts; ++shift) {
    Devices order = usual;
    order.insert(order.end() - static_cast<std::ptrdiff_t>(shift), slow_ones.begin(), slow_ones.end());
    for (std::size_t cut = 0; cut < job.cuts.size(); ++cut) {
      NodeDivision divided = division(job, order, static_cast<std::size_t>(job.tp) >> cut, slow);
      const double sum = worth(job, divided);
      if (sum <= most * (1 + 1e-12)) continue;
      most = sum;
      best = std::move(divided);
    }
  }
  return best;
}

}  // namespace hdpsim
