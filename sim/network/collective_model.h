#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "sim/cost/cost_model.h"
#include "sim/network/collective_plan.h"
#include "sim/network/device_sets.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// What start-up and rate of a collective rest on, the firmest ground first.
enum class CollectiveBasis { measured, profile, nccl_model, closed_form };
/// As reports tell it: measured, profile, NCCL's model, closed form.
[[nodiscard]] std::string_view collective_basis_name(CollectiveBasis basis);

/// As NCCL_ALGO and NCCL_PROTO restrict NCCL's choice. If empty, any.
struct NcclChoice {
  std::optional<CollectiveAlgorithm> algorithm;
  std::optional<Protocol> protocol;
  [[nodiscard]] bool is_free() const { return !algorithm && !protocol; }
};

/// A collective of one size: time = latency + bytes x seconds_a_byte, with bytes as nccl-tests counts them.
struct CollectiveEstimate {
  Duration time;
  Evidence evidence = Evidence::formula;
  CollectiveBasis basis = CollectiveBasis::closed_form;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;  ///< Who sends what to whom: see collective_plan.h.
  Protocol protocol = Protocol::simple;
  double wire_bytes = 1;  ///< On the links for each byte of data, flags of the protocol included.
  double latency_s = 0;
  double seconds_a_byte = 0;
};

struct CollectiveTerms;

/// How the sets of a collective are spread over nodes.
struct CollectiveSpan {
  std::int64_t ranks = 1;    ///< Of each set.
  std::int64_t nodes = 1;    ///< The most that a set reaches.
  std::int64_t in_node = 1;  ///< The most devices of a set in one node.
  bool is_even = true;       ///< Each node of a set holds as many of its devices.
  NodeId first;              ///< Of all sets.
  NodeId last;
};
[[nodiscard]] CollectiveSpan span_of(const ClusterSpec& cluster, const DeviceSets& sets);

/// The collectives of a cluster: how long one takes among some devices, by which algorithm, over which links, and what
/// that rests on. Training steps of every grain and `hdpsim comm` ask this one, so that a collective has one price.
///
/// What comes first in this list and knows the collective decides its start-up, its rate and its algorithm:
///
/// 1. measured: the profile is of the cluster's device and has a curve of this kind among as many devices, inside a
///    node or over nodes as here, whose range includes the size.
/// 2. profile: the profile has a line for this kind on this span (CollectiveRate, SendRecvRate), which is that of
///    NVLink in one node and that of the network over several.
/// 3. NCCL's model of itself: the device is one that NCCL runs on (ClusterSpec::compute_capability is known).
/// 4. closed form: a ring, or direct messages, at the rate that messages of the profile reach.
///
/// Whichever it is, the bytes cross the links of the cluster on the routes of that algorithm, all sets at once, and the
/// collective is no faster than the fullest link lets it be: so devices behind one NIC divide it, and a link that is
/// degraded or oversubscribed holds all of them back. Nothing else uses the links.
class CollectiveModel {
 public:
  /// `links` are those of the bare cluster. They and the profile must outlive the model.
  CollectiveModel(const ClusterLinks& links, const DeviceProfile& profile, DeviceSets sets);

  /// `bytes` is what nccl-tests calls the size: what each device holds after an all-gather, before a reduce-scatter or
  /// an all-reduce, or sends in an all-to-all, its own part included. Sets of one device take no time. Answers are
  /// kept; a new algorithm costs O(devices) routes (see CollectivePlanner), a new size O(1).
  [[nodiscard]] const CollectiveEstimate& estimate(CollectiveKind kind, Bytes bytes) const;
  /// With NCCL's choice restricted, which is NCCL's model whatever the profile knows. Empty if NCCL has no such way.
  [[nodiscard]] std::optional<CollectiveEstimate> estimate(CollectiveKind kind, Bytes bytes,
                                                           const NcclChoice& choice) const;
  /// How a collective loads the links: a part for each set.
  [[nodiscard]] CollectivePlan flows(CollectiveKind kind, const CollectiveEstimate& estimate) const;

  [[nodiscard]] const CollectiveSpan& span() const { return span_; }

 private:
  /// The flows of an algorithm and the seconds that a byte takes on the fullest links, nothing else on them.
  struct Flows {
    CollectivePlan plan;
    FullestLinks fullest;
  };

  [[nodiscard]] CollectiveEstimate priced(CollectiveKind kind, Bytes bytes, const CollectiveTerms& terms) const;
  [[nodiscard]] const Flows& flows_of(CollectiveKind kind, CollectiveAlgorithm algorithm) const;

  const ClusterLinks& links_;
  const DeviceProfile& profile_;
  DeviceSets sets_;
  CollectiveSpan span_;
  mutable std::array<std::unordered_map<std::int64_t, CollectiveEstimate>, collective_kinds> answers_;
  mutable std::map<std::pair<CollectiveKind, CollectiveAlgorithm>, Flows> flows_;
};

}  // namespace hdpsim
