#pragma once

#include <cstddef>

namespace hdpsim::search_rules {

/// How far above the best, as a share of it, a candidate still counts as near: it may be better on other steps than on
/// the probe.
inline constexpr double near = 0.1;
/// The same for candidates of a plan that are tried with other schedules, because what these save differs more.
inline constexpr double within_reach_of_schedules = 0.5;
/// Candidates of a plan that are compared over all steps for being its best one.
inline constexpr std::size_t places_of_plan = 3;
/// Candidates that are evaluated between two looks at what is near; a fixed number, so that results do not depend on
/// the number of threads.
inline constexpr std::size_t at_a_time = 4;
/// Candidates of a plan that are tried with other exchanges, those with other schedules, those with other placements,
inline constexpr std::size_t most_refined = 12;
/// and those with other cuts and other levels of ZeRO.
inline constexpr std::size_t least_refined = 3;

}  // namespace hdpsim::search_rules
