#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/network/collective_model.h"
#include "sim/network/traffic.h"

namespace hdpsim {

/// The links that limit a collective, or the fullest ones where its own protocol is the limit.
struct Bottleneck {
  double used = 0;                 ///< Used share of their rate while the bytes move.
  std::int64_t links = 0;          ///< Number of such links.
  std::vector<std::string> first;  ///< Names of the first few.
};

/// The pace of a collective on the links of a cluster that endless traffic shares, and the links that limit it.
class CollectivePace {
 public:
  /// `links` must outlive the object.
  CollectivePace(const ClusterLinks& links, std::vector<DeviceId> devices, const std::vector<Traffic>& background);

  struct Pace {
    double seconds_a_byte = 0;
    Bottleneck bottleneck;
  };
  /// `alone` is the estimate with no other traffic on the links; traffic never makes a collective faster.
  [[nodiscard]] const Pace& pace(CollectiveKind kind, const CollectiveEstimate& alone);

 private:
  struct UsedLinks {
    double used = 0;
    std::vector<LinkId> links;
  };
  using Key = std::tuple<CollectiveKind, CollectiveAlgorithm, double, double>;

  [[nodiscard]] const CollectivePlan& plan(CollectiveKind kind, CollectiveAlgorithm algorithm);
  [[nodiscard]] Pace found_pace(const CollectivePlan& on_wire, double alone_seconds_a_byte) const;
  [[nodiscard]] UsedLinks fullest(const CollectivePlan& plan, double seconds_a_byte) const;
  [[nodiscard]] Bottleneck named(const UsedLinks& used) const;

  const ClusterLinks& links_;
  std::vector<DeviceId> devices_;
  std::vector<Transfer> background_;
  std::map<std::pair<CollectiveKind, CollectiveAlgorithm>, CollectivePlan> plans_;
  std::map<Key, Pace> paces_;
};

}  // namespace hdpsim
