#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace hdpsim {

/// A JSON value; the members of an object stand in the order in which they were added.
using Json = nlohmann::ordered_json;

// What the library makes of texts and values is compiled here alone, since it takes a compiler long. In all texts that
// are made of values, bytes that are no UTF-8 (names are users' text) become U+FFFD.

/// The text of a file for people, too: a line a value, indented by two, with a line end behind it.
[[nodiscard]] std::string json_page(const Json& value);
/// The value on one line, without a line end.
[[nodiscard]] std::string json_line(const Json& value);
/// The text as a JSON string, in its quotes.
[[nodiscard]] std::string json_string(std::string_view text);
/// The value of a text; one for which is_discarded() holds where it is no JSON, or nested too deeply (limits.h).
[[nodiscard]] Json parsed_json(std::string_view text);

/// Whether lists and maps of a JSON text are nested more deeply than a document may be (limits.h). A reader that makes
/// a tree of a text asks before: brackets by the million take a gigabyte.
[[nodiscard]] bool is_nested_too_deeply(std::string_view json);

}  // namespace hdpsim
