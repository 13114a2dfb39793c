#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/engine/machine.h"
#include "sim/engine/timeline.h"
#include "sim/network/network_model.h"
#include "sim/program/program.h"

namespace hdpsim {

/// The traffic of a link in a run: `bytes` and `utilisation` count what the main job sends.
struct LinkUse {
  std::string name;
  Bandwidth rate;                ///< The rate of messages between two devices on it.
  Bytes bytes;                   ///< Sum over all steps.
  double utilisation = 0;        ///< Share of the whole time that the link needs for it, at most what others leave.
  Bytes other_bytes = {};        ///< Sent by all other jobs.
  double other_utilisation = 0;  ///< The same for the other jobs.
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// What the main job and all others sent.
struct JobsTraffic {
  LinkTraffic main;
  LinkTraffic others;  ///< May be empty.
};

/// The links that all jobs together used most, at most `most` of them, busiest first; among equal ones the lower id.
/// Links over which the main job sent nothing are omitted. Shares are of `seconds`. O(links).
[[nodiscard]] std::vector<LinkUse> busiest_links(const JobsTraffic& traffic, double seconds,
                                                 const NetworkModel& network, std::size_t most);

/// All links of one kind (link_kind) and rate together, those without traffic among them: a degraded link is not
/// counted with the others of its kind. Shares are of the whole time, for which all jobs keep a link busy.
struct LinkKindUse {
  std::string kind;
  std::size_t links = 0;
  double mean = 0;      ///< Mean share over the links, ...
  double others = 0;    ///< ... and the part of it that is other jobs'.
  double most = 0;      ///< Share of the busiest link, the first of several.
  std::string busiest;  ///< Its name.
  Bandwidth rate;       ///< Of each.
};

/// Every kind of link of the network, in the order of their first ids. O(links).
[[nodiscard]] std::vector<LinkKindUse> use_by_kind(const JobsTraffic& traffic, Duration time,
                                                   const NetworkModel& network);

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
/// `intervals` equal parts of the window. What a micro-batch sends around rings is spread evenly over its interval, and
/// all else over the window, because a timeline does not follow every message: shares are means, and a peak does not
/// show. Requires the link bytes of a simulated timeline. O(sum of the groups' sizes x their hops' links + intervals).
[[nodiscard]] std::vector<LinkLoad> link_loads(const Program& program, const Timeline& timeline, const Machine& machine,
                                               TimeWindow window, std::size_t most, std::size_t intervals);

}  // namespace hdpsim
