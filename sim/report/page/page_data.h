#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hdpsim {

/// What page makers hand to a page's script.
using PageJson = nlohmann::ordered_json;

/// The text of html_page(): bytes of names that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string page_text(const PageJson& data);

/// Names of all activities, in their order.
[[nodiscard]] PageJson activity_names();

/// The colour of each plan by its number in page.css. Pages agree on them: a plan has the colour of its policy, a
/// second one of the same policy the next that is free.
[[nodiscard]] PageJson plan_colors(const std::vector<std::string>& plans);

/// What the names of a page mean: {"plans", "activities", "evidence"}, each from a name to a sentence. A plan has the
/// meaning of its policy, whose name is the first word of its own.
[[nodiscard]] PageJson definitions(const std::vector<std::string>& plans);

}  // namespace hdpsim
