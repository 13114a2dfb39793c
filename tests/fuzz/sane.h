#pragma once

#include <string>

#include "sim/engine/simulator.h"
#include "sim/run/step.h"
#include "sim/study/study.h"
#include "tests/fuzz/target.h"

namespace hdpsim::fuzz {

// What holds for whatever was simulated, with or without sense in the input. Each throws a Find where it does not.

/// Throws a Find of this kind, unless it holds.
void require(bool holds, const char* kind, const std::string& text);
/// Finite, and from `least` on.
void require_number(double number, double least, const char* kind);

/// Every rank's parts are no less than nothing and sum to the step; no link carried more than its rate in that time,
/// where links are shared (not in closed form).
void require_sane(const Timeline& timeline, const NetworkModel& network, Grain grain);
/// A document that a program can read, which says NaN or infinity nowhere.
void require_json(const std::string& text);
/// The same of a table.
void require_csv(const std::string& text);

/// Whether a study is so small that one execution may simulate the first step of all its runs several times: by its
/// runs, devices, layers, tokens and sequences.
[[nodiscard]] bool is_affordable(const Study& study);
/// Runs the first step of every run, in every grain, the study's own twice. All figures of all of them are sane, the
/// grains agree, the closed form is the shortest, and the second run is the first.
[[nodiscard]] Outcome run_sanely(Study study);

}  // namespace hdpsim::fuzz
