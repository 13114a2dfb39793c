#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/study/study_point.h"

namespace hdpsim {

/// What plans of a point take, for its planners: simulated on devices as planners know them, with links that nobody
/// shares. Safe to use from several threads at once.
class PlanPrice {
 public:
  explicit PlanPrice(const StudyPoint& point);

  /// The plan must be sound.
  [[nodiscard]] double seconds(const Plan& plan);

 private:
  [[nodiscard]] std::unique_ptr<World> take_world();

  ClusterSpec cluster_;
  std::shared_ptr<const DeviceProfile> profile_;
  JobLayout layout_;
  std::optional<TokenCut> cut_;
  std::vector<Fault> faults_;  ///< Those that planners know.
  std::shared_ptr<const LoweringContext> lowered_;
  std::unique_ptr<CostModel> cost_;  ///< Null where plans are cut per document.
  std::mutex mutex_;
  std::vector<std::unique_ptr<World>> idle_;  ///< Worlds that no thread uses.
};

}  // namespace hdpsim
