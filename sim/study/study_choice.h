#pragma once

#include <cstdint>
#include <string>

#include "sim/study/study.h"

namespace hdpsim {

/// The plan of a study that --plan names; if `name` is empty, the only plan. InputError if there is no such plan, or if
/// there are several to choose from.
[[nodiscard]] std::size_t chosen_plan(const Study& study, const std::string& name);

/// The point of a study that --point names, counted from 0. InputError if it does not exist.
[[nodiscard]] const StudyPoint& chosen_point(const Study& study, std::int64_t point);

}  // namespace hdpsim
