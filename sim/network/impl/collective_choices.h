#pragma once

#include <optional>
#include <vector>

#include "sim/network/cluster_links.h"
#include "sim/network/collective_model.h"
#include "sim/network/impl/algorithms.h"

namespace hdpsim {

// The bases of CollectiveModel. Each returns the terms of a collective, or no value if it does not cover
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
///     time = latency + max(bytes x seconds per byte, messages)
///
/// with the step latencies a and the shares of `links`, and the hops of the cluster's own switches. Every term grows
/// with the size and with latencies, and falls with rates, and so does the least of several times.
struct CollectiveTerms {
  CollectiveBasis basis = CollectiveBasis::closed_form;
  Evidence evidence = Evidence::formula;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  Protocol protocol = Protocol::simple;
  double wire_bytes = 1;
  double start_s = 0;
  double messages_s = 0;           ///< What the messages cost that processor which handles most of them.
  std::int64_t steps_inside = 0;   ///< Sequential messages inside a node,
  std::int64_t steps_between = 0;  ///< and between nodes.
  LinkEfficiency links = {};
  double seconds_a_byte = 0;
};

/// The sizes for which a measured curve covers a kind.
struct MeasuredSizes {
  std::int64_t least = 0;
  std::int64_t most = 0;
};
[[nodiscard]] std::optional<MeasuredSizes> measured_sizes(const CollectiveQuestion& question);
/// `question.bytes` must be one of the measured sizes (checked).
[[nodiscard]] CollectiveTerms measured_curve(const CollectiveQuestion& question);
[[nodiscard]] std::optional<CollectiveTerms> profile_line(const CollectiveQuestion& question);
/// The ways that NCCL's model of itself has, of those that the choice allows; none where NCCL does not run. Its
/// protocols get shares of the rate of rings on the links (ring_efficiency).
[[nodiscard]] std::vector<CollectiveTerms> nccl_ways(const CollectiveQuestion& question, const NcclChoice& choice);
[[nodiscard]] CollectiveTerms closed_form(const CollectiveQuestion& question);

/// The shares of the links' rates that collectives of a kind achieve: by the profile's lines of this kind, or of an
/// all-gather where switches reduce, or else of its messages. Without latencies.
[[nodiscard]] LinkEfficiency ring_efficiency(const CollectiveQuestion& question);

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
