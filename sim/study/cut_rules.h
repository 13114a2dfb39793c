#pragma once

#include <optional>

#include "sim/base/diagnostic.h"
#include "sim/model/sharing_form.h"
#include "sim/plan/given_plans.h"
#include "sim/study/point.h"

namespace hdpsim {

/// Whether a cut (empty: adaptive) goes with the way in which the point's ranks share a sequence, or with the one that
/// it asks for, and with its model's layers.
[[nodiscard]] std::optional<CutProblem> cut_problem(std::optional<TokenCut> cut, const PointSpec& point);

/// Reports every plan of files, at its file, that has a group of several ranks whose cut does not.
void check_cuts(const GivenPlans& plans, const PointSpec& point, Diagnostics& diagnostics);

}  // namespace hdpsim
