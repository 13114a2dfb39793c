#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/cost/cost_model.h"
#include "sim/engine/machine.h"
#include "sim/engine/world.h"
#include "sim/model/transformer.h"
#include "sim/network/collective_model.h"
#include "sim/network/network_model.h"

namespace hdpsim {

/// The collectives among the ranks of a micro-batch's group: one CollectiveModel for each set of ranks that was asked
/// about. The shards of a rank each run their own, at the same time.
///
/// A group of N consecutive ranks from a multiple of N on runs them at the same time as all other such groups of the
/// pool, on all stages, as under a static mesh; they have one price. Any other group has the links to itself.
class GroupCollectives {
 public:
  /// All must outlive the object.
  GroupCollectives(const Site& site, const Mesh& mesh, const Placement& placement)
      : site_(site), mesh_(mesh), placement_(placement) {}

  /// A new set costs O(its devices) routes; otherwise O(ranks of the group).
  [[nodiscard]] Estimate estimate(const SharingRanks& ranks, CollectiveKind kind, Bytes bytes);
  /// Adds what such a collective of this group sends `times` times. O(devices of the group).
  void add_traffic(const SharingRanks& ranks, CollectiveKind kind, Bytes bytes, double times, LinkTraffic& links);

 private:
  using Subgroups = std::pair<std::int64_t, std::int64_t>;                      ///< Ranks of a group and of a subgroup.
  using Others = std::tuple<std::vector<HdpRank>, std::int64_t, std::int64_t>;  ///< Group, stage, subgroup.

  [[nodiscard]] const CollectiveModel& model_of(const SharingRanks& ranks);
  [[nodiscard]] CollectiveModel model_among(const std::vector<std::vector<HdpRank>>& subgroups,
                                            const std::vector<std::int64_t>& stages) const;
  [[nodiscard]] CollectiveModel model_of_all(const SharingRanks& ranks) const;

  const Site& site_;
  Mesh mesh_;
  const Placement& placement_;
  std::map<Subgroups, CollectiveModel> aligned_;
  std::map<Others, CollectiveModel> others_;
};

/// The all-to-alls of expert groups in which a token travels once to each node that has some of its experts and, inside
/// that node, once to each device that has some (DeepEP). Devices that have the same place in their nodes exchange over
/// the network what devices of a node then forward to each other, chunk by chunk, so that the slower of the two sets
/// the time: two all-to-alls whose sizes are those of a device's tokens times mean_parts() of the nodes and of the
/// devices. Their rates are those that the profile states for it (LinkProfile::dispatch), or those of NCCL's
/// all-to-all.
///
/// Where nodes have unequally many devices of their groups, a token travels once to each device by itself.
class NodeExchange {
 public:
  /// `groups` are the expert groups that exchange at the same time. The site must outlive the object.
  NodeExchange(const Site& site, const DeviceSets& groups);

  /// `tokens`: bytes of a device's tokens, each counted once. mean_parts() is kept for the mixture asked about last.
  [[nodiscard]] Estimate estimate(const MixtureOfExperts& moe, Bytes tokens) const;

  /// The sizes of the two all-to-alls per byte of tokens: the nodes, and the devices, that have an expert of a token,
  /// on average.
  struct Parts {
    double nodes = 0;
    double devices = 0;
  };
  [[nodiscard]] const Parts& parts_of(const MixtureOfExperts& moe) const;
  /// The models that price the two; null where there is no such exchange.
  [[nodiscard]] const std::shared_ptr<const CollectiveModel>& between() const { return between_; }
  [[nodiscard]] const std::shared_ptr<const CollectiveModel>& inside() const { return inside_; }

 private:
  struct Known {
    MixtureOfExperts moe;
    Parts parts;
  };

  DeviceProfile profile_;  ///< That of the site, with the rates of these exchanges as those of all-to-alls.
  std::int64_t devices_ = 1;
  std::int64_t nodes_ = 1;
  std::shared_ptr<const CollectiveModel> between_;  ///< Among devices in the same place of their nodes; null: one node.
  std::shared_ptr<const CollectiveModel>
      inside_;  ///< Among the devices of a node, or of an uneven group; null: one each.
  mutable Known known_;
};

}  // namespace hdpsim
