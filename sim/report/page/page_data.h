#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/document/json.h"

namespace hdpsim {

// Parts of what page makers hand to a page's script, as json_line().

/// The colour of each plan by its number in page.css. Pages agree on them: a plan has the colour of its policy, a
/// second one of the same policy the next that is free.
[[nodiscard]] Json plan_colors(const std::vector<std::string>& plans);

/// What the names of a page mean: {"plans", "activities", "evidence"}, each from a name to a sentence, in their order.
/// A plan has the meaning of its policy, whose name is the first word of its own.
[[nodiscard]] Json definitions(const std::vector<std::string>& plans);

}  // namespace hdpsim
