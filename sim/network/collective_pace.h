#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/network/collective_model.h"
#include "sim/network/traffic.h"

namespace hdpsim {

/// The links that hold a collective back, or the fullest ones where its own protocol does.
struct Bottleneck {
  double used = 0;                 ///< Of their rate, while the bytes move.
  std::int64_t links = 0;          ///< How many are so.
  std::vector<std::string> first;  ///< The names of some.
};

/// How fast a collective goes on the links of a cluster beside traffic that goes on for ever, and what holds it back.
class CollectivePace {
 public:
  /// `links` must outlive it.
  CollectivePace(const ClusterLinks& links, std::vector<DeviceId> devices, const std::vector<Traffic>& background);

  struct Pace {
    double seconds_a_byte = 0;
    Bottleneck bottleneck;
  };
  /// `alone` is what the collective takes with nothing else on the links; no traffic makes it faster.
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
