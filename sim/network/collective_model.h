#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/cluster/placement.h"
#include "sim/cost/cost_model.h"
#include "sim/network/collective_plan.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

/// Sets of devices that run the same collective at the same time: all of one size, no device in two of them.
using DeviceSets = std::vector<std::vector<DeviceId>>;

/// The devices of all HDP ranks that hold the same shard of the same stage: one set per shard, stage by stage.
[[nodiscard]] DeviceSets pools(const Mesh& mesh, const Placement& placement);

/// Of each pool the groups of `devices` that shard states among each other (Mesh::shard_ranks), and those that hold the
/// same shard: one set per group or place in a group, pool by pool.
[[nodiscard]] DeviceSets shard_groups(const DeviceSets& pools, std::int64_t devices);
[[nodiscard]] DeviceSets shard_replicas(const DeviceSets& pools, std::int64_t devices);

/// The devices that exchange tokens in all-to-alls of experts, stage by stage: of the consecutive devices of each
/// expert group (ExpertDivision::devices()) the ep that have the same part of their experts.
[[nodiscard]] DeviceSets expert_groups(const Mesh& mesh, const Placement& placement);
/// The devices that cut the same experts (ExpertDivision::etp).
[[nodiscard]] DeviceSets expert_cuts(const Mesh& mesh, const Placement& placement);
/// The devices that have the same experts: one set per place in a group, stage by stage.
[[nodiscard]] DeviceSets expert_pools(const Mesh& mesh, const Placement& placement);

/// The source of the start-up and rate of a collective, the most reliable one first.
enum class CollectiveBasis { measured, profile, nccl_model, closed_form };
/// The name in reports: measured, profile, NCCL's model, closed form.
[[nodiscard]] std::string_view collective_basis_name(CollectiveBasis basis);

/// A restriction of NCCL's choice, as by NCCL_ALGO and NCCL_PROTO. Empty: no restriction.
struct NcclChoice {
  std::optional<CollectiveAlgorithm> algorithm;
  std::optional<Protocol> protocol;
  [[nodiscard]] bool is_free() const { return !algorithm && !protocol; }
};

/// Bytes of messages between two devices that would keep a link busy as long as one byte of a collective does.
struct AsMessages {
  double inside = 1;   ///< Links inside a node.
  double between = 1;  ///< Links of NICs and switches.

  [[nodiscard]] double on(LinkId link, const ClusterLinks& links) const {
    return links.is_inside_node(link) ? inside : between;
  }
  friend bool operator==(const AsMessages&, const AsMessages&) = default;
};

/// A collective of one size: time = latency + bytes x seconds_a_byte, with bytes as nccl-tests counts them.
struct CollectiveEstimate {
  Duration time;
  Evidence evidence = Evidence::formula;
  CollectiveBasis basis = CollectiveBasis::closed_form;
  CollectiveAlgorithm algorithm = {};  ///< The pattern of sends: see collective_plan.h.
  Protocol protocol = Protocol::simple;
  double wire_bytes = 1;  ///< Bytes on the links per byte of data, flags of the protocol included.
  double latency_s = 0;
  double seconds_a_byte = 0;
  AsMessages as_messages = {};
};

/// Says that a cluster's `in_network_reduction` is ignored, and why: no switches join its nodes, or NCCL does not run
/// on its devices. Empty where it changes collectives, and where the cluster does not say it.
[[nodiscard]] std::string why_no_in_network_reduction(const ClusterSpec& cluster);

struct CollectiveTerms;

/// How the sets of a collective are spread over nodes.
struct CollectiveSpan {
  std::int64_t ranks = 1;    ///< Devices of each set.
  std::int64_t nodes = 1;    ///< The most nodes that one set spans.
  std::int64_t in_node = 1;  ///< The most devices of a set in one node.
  bool is_even = true;       ///< All nodes of a set hold the same number of its devices.
  NodeId first;              ///< The first and last node of all sets.
  NodeId last;
};
[[nodiscard]] CollectiveSpan span_of(const ClusterSpec& cluster, const DeviceSets& sets);

/// The collectives of a cluster: how long one takes among some devices, by which algorithm, over which links, and on
/// which basis. Training steps of every grain and `hdpsim comm` use this model, so that a collective has one price.
///
/// The first entry of this list that covers the collective decides its start-up, its rate and its algorithm:
///
/// 1. measured: the profile was measured on the cluster's device, and has a curve of this kind for the same number of
///    devices, inside a node or between nodes as here, whose range includes the size. What the rest of the list says of
///    larger sizes is at least the time of the largest measured one, of smaller sizes at most that of the smallest.
/// 2. profile: the profile has a line for this kind (CollectiveRate, SendRecvRate): that of NVLink within one node, or
///    that of the network over several. It describes the rings of large messages for which lines are made. NCCL's
///    other ways (trees, LL, LL128), by its model of itself and at no higher rate than the line's, compete with it.
///    What the line takes at least, and NCCL's model of its algorithm does not, they take, too, as far as a message
///    fills a buffer. Switches between the nodes that add up (ClusterSpec::in_network_reduction) count there as NCCL
///    has them.
/// 3. NCCL's model of itself: NCCL runs on the device (ClusterSpec::compute_capability is known).
/// 4. closed form: a ring, or direct messages, at the rate of the profile's messages.
///
/// Of several ways the cheapest is taken, by the price on the links of the cluster: NCCL's own choice knows neither the
/// lines nor the links above the NICs. As each way gets no cheaper with size, nor dearer with a faster link, the price
/// does not, either.
///
/// In every case the bytes cross the links of the cluster on the routes of that algorithm, all sets at once, and the
/// fullest link bounds the rate: devices behind one NIC share it, and a degraded or oversubscribed link slows all of
/// them down. No other traffic is on the links.
class CollectiveModel {
 public:
  /// `links` are those of the bare cluster. `links` and `profile` must outlive the model.
  CollectiveModel(const ClusterLinks& links, const DeviceProfile& profile, DeviceSets sets);
  ~CollectiveModel() = default;
  CollectiveModel(const CollectiveModel&) = delete;
  CollectiveModel& operator=(const CollectiveModel&) = delete;
  CollectiveModel(CollectiveModel&&) = default;
  CollectiveModel& operator=(CollectiveModel&&) = delete;

  /// `bytes` is the size by nccl-tests: what each device holds after an all-gather, before a reduce-scatter or an
  /// all-reduce, or sends in an all-to-all, its own part included. Sets of one device take no time. Estimates are
  /// cached; a new algorithm costs O(devices) routes (see plan_collective()), a new size O(1).
  [[nodiscard]] const CollectiveEstimate& estimate(CollectiveKind kind, Bytes bytes) const;
  /// The estimate with NCCL's choice restricted, always by NCCL's model, at the rates that the profile states of links.
  /// Returns no value if NCCL has no such combination.
  [[nodiscard]] std::optional<CollectiveEstimate> estimate(CollectiveKind kind, Bytes bytes,
                                                           const NcclChoice& choice) const;
  /// The load of a collective on the links, with one part per set.
  [[nodiscard]] CollectivePlan flows(CollectiveKind kind, const CollectiveEstimate& estimate) const;
  /// The same of an algorithm, without the flags of a protocol. Valid as long as the model.
  [[nodiscard]] const CollectivePlan& plan(CollectiveKind kind, CollectiveAlgorithm algorithm) const;
  [[nodiscard]] const DeviceSets& sets() const { return sets_; }
  [[nodiscard]] const ClusterLinks& links() const { return links_; }

  [[nodiscard]] const CollectiveSpan& span() const { return span_; }

 private:
  /// The flows of an algorithm, and the seconds per byte on the fullest links with no other traffic.
  struct Flows {
    CollectivePlan plan;
    FullestLinks fullest;
  };

  /// The estimates of a kind by bytes. A layer has several collectives of the same bytes.
  struct Answers {
    std::unordered_map<std::int64_t, CollectiveEstimate> of_bytes;
    const std::pair<const std::int64_t, CollectiveEstimate>* last = nullptr;  ///< The one asked for last.
  };

  [[nodiscard]] CollectiveEstimate price(CollectiveKind kind, Bytes bytes) const;
  [[nodiscard]] CollectiveEstimate cheapest(CollectiveKind kind, Bytes bytes, std::vector<CollectiveTerms> ways) const;
  [[nodiscard]] CollectiveEstimate priced(CollectiveKind kind, Bytes bytes, const CollectiveTerms& actual) const;
  [[nodiscard]] const Flows& flows_of(CollectiveKind kind, CollectiveAlgorithm algorithm) const;

  const ClusterLinks& links_;
  const DeviceProfile& profile_;
  DeviceSets sets_;
  CollectiveSpan span_;
  mutable std::array<Answers, collective_kinds> answers_;
  mutable std::map<std::pair<CollectiveKind, CollectiveAlgorithm>, Flows> flows_;
};

}  // namespace hdpsim
