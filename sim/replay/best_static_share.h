#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/study/catalog.h"
#include "sim/study/study.h"

namespace hdpsim {

/// The best static mesh of the same tp and pp as a replay's baseline, beside that baseline.
struct BestStaticShare {
  std::string plan;        ///< "static (a2a)"; the baseline where that is the best itself.
  std::string sharing;     ///< A word of `mesh.cp_comm_type`, ...
  std::string cut;         ///< ... one of `mesh.cp_cut`, ...
  std::int64_t cp = 1;     ///< ... and the ranks of its groups.
  double share = 1;        ///< Its time over the baseline's, ...
  std::int64_t steps = 0;  ///< ... in so many steps, evenly spread over the replay.
};

/// The share of time that the best static mesh (best_static_plan) takes of a replay's baseline, in 32 steps or in all
/// of fewer. Empty if the baseline is not `static`, if no way to share a sequence fits, and if it was stopped.
[[nodiscard]] std::optional<BestStaticShare> best_static_share(const Study& study, const StudyPoint& point,
                                                               Catalog& catalog, std::size_t jobs,
                                                               const std::function<bool()>& stop);

}  // namespace hdpsim
