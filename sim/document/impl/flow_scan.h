#pragma once

#include <cstddef>
#include <string_view>

namespace hdpsim {

/// How much of a YAML text has to be parsed to refuse it: up to the bracket that nests too deeply, or the comma that
/// makes the values between brackets too many (limits.h). The whole of it where neither is found.
///
/// The parser keeps every token of a value in brackets until the value has ended, 240 bytes for a bracket, so that a
/// text is measured before. What stands in quotes, comments and block scalars is no bracket. It is a guess: a text
/// whose beginning is then accepted is parsed as a whole.
[[nodiscard]] std::size_t bytes_to_parse(std::string_view text);

}  // namespace hdpsim
