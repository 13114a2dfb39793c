#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"
#include "sim/tune/tune.h"

namespace hdpsim {

/// How baselines are searched for, and where what was found is kept.
struct BaselineRun {
  /// Jobs, `version`, `stop` and `report`, the last with the progress of all points together. Evaluations of a search
  /// are not kept.
  TuneRun search{};
  Journal* journal = nullptr;  ///< Where winners of searches and their runs over all steps are kept, if anywhere.
};

/// What `compare_to: {PLAN: tuned}` asks for: at every point of the study the baseline on the mesh on which it is
/// fastest, with all steps. The mesh is the winner of tune() over the paths of `mesh` and `training` alone, because a
/// baseline has the cluster and the kernels of the plans that are compared with it; `tune.space` narrows the search
/// where it names them. The runs are called "static (tuned)".
///
/// Points for which a search would see the same have one search, and what `run` keeps of earlier ones is not searched
/// for again. `root` comes from tuning_root(). Empty if it was stopped. InputError if the baseline can run on no mesh.
[[nodiscard]] std::optional<std::vector<std::shared_ptr<const Run>>> tuned_baselines(const Study& study,
                                                                                     const Value& root,
                                                                                     Catalog& catalog,
                                                                                     const BaselineRun& run);

/// Compares the runs of a study with its tuned_baselines() if it asks for that; false if it was stopped.
[[nodiscard]] bool compare_with_tuned(const Study& study, const Value& root, Catalog& catalog, const BaselineRun& run,
                                      std::vector<Run>& runs);

}  // namespace hdpsim
