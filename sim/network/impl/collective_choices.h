#pragma once

#include <optional>

#include "sim/network/collective_model.h"
#include "sim/network/impl/algorithms.h"
#include "sim/network/link_efficiency.h"

namespace hdpsim {

// The bases of CollectiveModel, one file each. Each returns the terms of a collective, or no value if it does not cover
// it.

struct CollectiveQuestion {
  const ClusterSpec& cluster;
  const DeviceProfile& profile;
  const CollectiveSpan& span;
  CollectiveKind kind;
  std::int64_t bytes;
};

/// Start-up and rate of a collective, before the links of the cluster are taken into account:
///
///     latency = start + inside x (a_inside + hop) + between x (a_between + hop)
///     seconds per byte = max(seconds_a_byte, wire_bytes x time of a byte on the fullest link at its share of its rate)
///
/// with the step latencies a and the shares of `links`, and the hops of the cluster's own switches.
struct CollectiveTerms {
  CollectiveBasis basis = CollectiveBasis::closed_form;
  Evidence evidence = Evidence::formula;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  Protocol protocol = Protocol::simple;
  double wire_bytes = 1;
  double start_s = 0;
  std::int64_t steps_inside = 0;   ///< Sequential messages inside a node,
  std::int64_t steps_between = 0;  ///< and between nodes.
  LinkEfficiency links = {};
  double seconds_a_byte = 0;
};

[[nodiscard]] std::optional<CollectiveTerms> measured_curve(const CollectiveQuestion& question);
[[nodiscard]] std::optional<CollectiveTerms> in_network_way(const CollectiveQuestion& question);
[[nodiscard]] std::optional<CollectiveTerms> profile_line(const CollectiveQuestion& question);
[[nodiscard]] std::optional<CollectiveTerms> nccl_way(const CollectiveQuestion& question, const NcclChoice& choice);
[[nodiscard]] CollectiveTerms closed_form(const CollectiveQuestion& question);

/// Counts the sequential messages of a ring of all devices, which an all-reduce passes twice: one less than there are
/// devices, of which one less than there are nodes go from node to node (NCCL, tuning.cc).
void count_ring_steps(const CollectiveQuestion& question, CollectiveTerms& terms);

/// Bytes per second and direction of a device inside its node, and of its share of its NIC: the slowest of the nodes.
struct DeviceRates {
  double inside = 0;
  double between = 0;
};
[[nodiscard]] DeviceRates device_rates(const CollectiveQuestion& question);

}  // namespace hdpsim
