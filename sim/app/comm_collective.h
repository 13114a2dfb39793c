#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/network/collective_plan.h"
#include "sim/network/nccl_model.h"
#include "sim/network/traffic.h"
#include "sim/profile/device_profile.h"
#include "sim/report/comm_report.h"

namespace hdpsim::app {

/// As NCCL_ALGO and NCCL_PROTO restrict the choice; empty: any.
struct NcclChoice {
  std::string algorithm;
  std::string protocol;
};

/// One collective of the first `ranks` devices of a cluster, size by size. How it is done is what NCCL's model of
/// itself finds fastest; start-up and rate are those of the profile where it has a line for it, else those of that
/// model; and its bytes cross the links of the cluster, where it is no faster than the fullest of them lets it, alone
/// or beside other traffic.
class CommCollective {
 public:
  /// Throws InputError if the ranks are no whole number of nodes.
  CommCollective(const ClusterSpec& cluster, const std::optional<DeviceProfile>& profile, CollectiveKind kind,
                 std::int64_t ranks, const std::vector<Traffic>& background);

  /// Throws InputError if NCCL does not have the choice here.
  [[nodiscard]] CommRow row(std::int64_t bytes, const NcclChoice& choice);
  [[nodiscard]] std::int64_t nodes() const { return nodes_; }

 private:
  /// What links let a plan do.
  struct Pace {
    double seconds_a_byte = 0;
    Bottleneck bottleneck;
  };
  struct UsedLinks {
    double used = 0;
    std::vector<LinkId> links;
  };
  struct PaceKey {
    CollectiveAlgorithm algorithm;
    double wire_bytes;
    double most;
    friend auto operator<=>(const PaceKey&, const PaceKey&) = default;
  };

  [[nodiscard]] CollectiveTime nccl_way(std::int64_t bytes, const NcclChoice& choice) const;
  [[nodiscard]] std::optional<CollectiveTime> measured(std::int64_t bytes) const;
  [[nodiscard]] const CollectivePlan& plan(CollectiveAlgorithm algorithm);
  [[nodiscard]] const Pace& pace(const PaceKey& key);
  [[nodiscard]] UsedLinks fullest_links(const CollectivePlan& plan, double seconds_a_byte) const;
  [[nodiscard]] static UsedLinks slowest_links(FairShare& network, const std::vector<Transfer>& transfers,
                                               std::size_t own);
  [[nodiscard]] Bottleneck named(const UsedLinks& used) const;

  std::optional<DeviceProfile> profile_;
  bool is_device_of_profile_ = false;
  CollectiveKind kind_;
  std::int64_t ranks_;
  std::int64_t nodes_;
  NcclGroup physical_;  ///< Rates of the hardware,
  NcclGroup group_;     ///< and what messages get of them.
  ClusterLinks links_;
  std::vector<Transfer> background_;
  std::map<CollectiveAlgorithm, CollectivePlan> plans_;
  std::map<PaceKey, Pace> paces_;
};

}  // namespace hdpsim::app
