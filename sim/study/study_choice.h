#pragma once

#include <cstdint>
#include <string>

#include "sim/study/study.h"

namespace hdpsim {

/// The plan of a study that --plan names; the only one, if it names none. InputError if there is no such plan, or
/// several to choose from.
[[nodiscard]] std::size_t chosen_plan(const Study& study, const std::string& name);

/// The point of a study that --point names, counted from 0. InputError if there is none.
[[nodiscard]] const StudyPoint& chosen_point(const Study& study, std::int64_t point);

}  // namespace hdpsim
