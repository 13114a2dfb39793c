#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/engine/machine.h"
#include "sim/engine/site.h"
#include "sim/network/collective_model.h"
#include "sim/network/link_traffic.h"

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
  using Parties = std::pair<std::int64_t, std::int64_t>;                        ///< Ranks of a group and of a party.
  using Others = std::tuple<std::vector<HdpRank>, std::int64_t, std::int64_t>;  ///< Group, stage, party.

  [[nodiscard]] const CollectiveModel& model_of(const SharingRanks& ranks);
  [[nodiscard]] CollectiveModel model_among(const std::vector<std::vector<HdpRank>>& parties,
                                            const std::vector<std::int64_t>& stages) const;
  [[nodiscard]] CollectiveModel model_of_all(const SharingRanks& ranks) const;

  const Site& site_;
  Mesh mesh_;
  const Placement& placement_;
  std::map<Parties, CollectiveModel> aligned_;
  std::map<Others, CollectiveModel> others_;
};

}  // namespace hdpsim
