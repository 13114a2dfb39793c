#pragma once

#include <optional>
#include <string>

#include "sim/base/diagnostic.h"
#include "sim/plan/given_plans.h"
#include "sim/study/point.h"

namespace hdpsim {

/// Why the groups of a job cannot cut their tokens in a way, and what to write instead.
struct CutProblem {
  std::string message;
  std::string help;
};

/// Why ranks of a point cannot attend for each other (TokenCut::served). Empty: they can.
[[nodiscard]] std::string servers_problem(const Transformer& model, const Recipe& recipe);

/// Whether a cut (empty: adaptive) goes with the way in which the point's keys travel, and with its model's layers.
[[nodiscard]] std::optional<CutProblem> cut_problem(std::optional<TokenCut> cut, const PointSpec& point);

/// Reports every plan of files, at its file, that has a group of several ranks whose cut does not.
void check_cuts(const GivenPlans& plans, const PointSpec& point, Diagnostics& diagnostics);

}  // namespace hdpsim
