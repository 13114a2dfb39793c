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

/// An interval of a step.
struct TimeWindow {
  Instant from;
  Instant to;
};

/// The share of its rate that a step used of a link, for consecutive intervals of equal length.
struct LinkLoad {
  std::string name;
  std::vector<double> shares;
};

/// The load of the links that the step used most, at most `most` of them, busiest first, as means over each of
/// `stretches` equal parts of the window. What a micro-batch sends around rings is spread evenly over its interval, and
/// all else over the window, because a timeline does not follow every message: shares are means, and a peak does not
/// show. Requires the link bytes of a simulated timeline. O(sum of the groups' sizes x their hops' links + stretches).
[[nodiscard]] std::vector<LinkLoad> link_loads(const Program& program, const Timeline& timeline, const Machine& machine,
                                               TimeWindow window, std::size_t most, std::size_t stretches);

}  // namespace hdpsim
