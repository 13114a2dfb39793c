#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim {

/// A stretch of a step.
struct TimeWindow {
  Instant from;
  Instant to;
};

/// How much of its rate the rings of a step took from a link, in turn over stretches of equal length.
struct LinkLoad {
  std::string name;
  std::vector<double> shares;
};

/// The load of the links that the step's rings used most of the time, at most `most` of them, busiest first; each as
/// the means of `stretches` equal parts of the window. What a micro-batch sends is spread evenly over its interval,
/// which is all that a timeline knows of it without following every message: shares are means, and a peak within a
/// micro-batch does not show. Requires the link bytes of a simulated timeline.
/// O(sum of the groups' sizes x their hops' links + stretches).
[[nodiscard]] std::vector<LinkLoad> link_loads(const Program& program, const Timeline& timeline, const Machine& machine,
                                               TimeWindow window, std::size_t most, std::size_t stretches);

}  // namespace hdpsim
