#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/run/runner.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"

namespace hdpsim {

/// Whether compare_with_best_static() has something to search for.
[[nodiscard]] bool has_best_static(const Study& study);

/// Compares the runs of a study whose speed-ups are over a plan `static` with the fastest `static` of the same tp and
/// pp, too (Run::best_static), which shares a sequence in another way: by `mesh.cp_comm_type`, `mesh.cp_cut` and,
/// unless the study states it, the degree `cp`. What does not fit is not in the running. Other studies stay as they
/// are, and so do points at which no way fits.
///
/// Ways are judged on the first four steps, of the job alone. Each exchange runs with the cut that it is made for
/// (allowed_sharings); the other cuts follow for exchanges that are at most a tenth slower than the fastest, and larger
/// degrees for the fastest of all, as long as they help; what does not fit is tried with twice the degree. The fastest
/// then runs all steps, unless the study has it among its runs; where the study's own baseline is as fast over all of
/// them, that is the best. Points that differ in sharing alone have one search.
///
/// Of `options`, `jobs`, `journal`, `version` and `stop` count. If `only` is given, runs of other
/// points stay as they are. False if it was stopped.
[[nodiscard]] bool compare_with_best_static(const Study& study, Catalog& catalog, const RunnerOptions& options,
                                            std::vector<Run>& runs, std::optional<std::size_t> only = {});

/// The fastest way at one point, as it was judged.
struct BestStaticPlan {
  std::string name;  ///< "static (a2a)"; that of the baseline where this is the way that the study states.
  Study study;       ///< The point with that plan as the only one, complete.
  std::int64_t cp = 1;
};

/// The same judgement of one point for those who run steps of their own, for a baseline of theirs: the index of a plan.
/// Empty if that plan is not `static` made by the policy, if no way fits, and if it was stopped.
[[nodiscard]] std::optional<BestStaticPlan> best_static_plan(const Study& study, std::size_t point,
                                                             std::size_t baseline, Catalog& catalog,
                                                             const std::function<bool()>& stop);

}  // namespace hdpsim
