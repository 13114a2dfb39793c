#pragma once

#include <optional>

#include "sim/network/collective_model.h"
#include "sim/network/impl/algorithms.h"
#include "sim/network/link_efficiency.h"

namespace hdpsim {

// The choices of CollectiveModel, a file each. Each says what it knows of a collective, or that it does not know it.

struct CollectiveQuestion {
  const ClusterSpec& cluster;
  const DeviceProfile& profile;
  const CollectiveSpan& span;
  CollectiveKind kind;
  std::int64_t bytes;
};

/// Start-up and rate of a collective, before the links of the cluster have their say:
///
///     latency = start + inside x (a_inside + hop) + between x (a_between + hop)
///     seconds a byte = max(seconds_a_byte, wire_bytes x what the fullest link takes at its share of its rate)
///
/// with the step latencies a and the shares of `links`, and the hops of the cluster's own switches.
struct CollectiveTerms {
  CollectiveBasis basis = CollectiveBasis::closed_form;
  Evidence evidence = Evidence::formula;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  Protocol protocol = Protocol::simple;
  double wire_bytes = 1;
  double start_s = 0;
  std::int64_t steps_inside = 0;   ///< Messages one after the other inside a node,
  std::int64_t steps_between = 0;  ///< and between nodes.
  LinkEfficiency links = {};
  double seconds_a_byte = 0;
};

[[nodiscard]] std::optional<CollectiveTerms> measured_curve(const CollectiveQuestion& question);
[[nodiscard]] std::optional<CollectiveTerms> profile_line(const CollectiveQuestion& question);
[[nodiscard]] std::optional<CollectiveTerms> nccl_way(const CollectiveQuestion& question, const NcclChoice& choice);
[[nodiscard]] CollectiveTerms closed_form(const CollectiveQuestion& question);

/// Messages of a ring one after the other, an all-reduce passing it twice: those inside a node are counted once, as
/// all nodes exchange theirs at the same time. Counted for each device, as NCCL's ring with its Simple protocol would
/// pay them, they would exceed what NCCL takes with the protocol that it changes to (LL128) twice at 64 nodes.
void count_ring_steps(const CollectiveQuestion& question, CollectiveTerms& terms);

/// Bytes a second and direction of a device inside its node, and of its share of its NIC: the slowest of the nodes.
struct DeviceRates {
  double inside = 0;
  double between = 0;
};
[[nodiscard]] DeviceRates device_rates(const CollectiveQuestion& question);

}  // namespace hdpsim
