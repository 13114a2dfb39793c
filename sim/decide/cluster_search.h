#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/decide/decision.h"
#include "sim/decide/size_search.h"
#include "sim/run/runner.h"
#include "sim/study/catalog.h"

namespace hdpsim {

/// What is searched for: the fewest GPUs with which a plan trains its tokens in time.
struct ClusterGoal {
  double tokens = 0;
  double days = 0;
  std::optional<std::int64_t> most_gpus{};  ///< Empty: as many as a cluster may have.
};

/// What the search of one plan has found. The study keeps its model, mesh and the tokens of a step: more GPUs are more
/// HDP ranks.
struct PlanSizes {
  std::string plan;
  std::map<std::int64_t, Decision> simulated;   ///< By GPUs, over the study's own size.
  std::map<std::int64_t, std::string> refused;  ///< Sizes that the study's reader refuses, and why.
  SizeAnswer smallest;                          ///< By the predicted days, ...
  std::optional<SizeAnswer> surest{};           ///< ... and by the upper ends of their intervals, if there are any.
};

/// The search for every plan of a study at its first point, whose own size is the first that is tried. Sizes are whole
/// nodes, and multiples of what the mesh needs: the study's reader decides. Of `how`, `jobs`, `version`, `stop` and
/// `report` count. Empty if it was stopped. InputError if the job does not have the whole cluster.
[[nodiscard]] std::optional<std::vector<PlanSizes>> search_clusters(const Study& study, const ClusterGoal& goal,
                                                                    const StudyPrices& prices, Catalog& catalog,
                                                                    const RunnerOptions& how);

}  // namespace hdpsim
