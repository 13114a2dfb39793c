#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "sim/base/diagnostic.h"

namespace hdpsim {

// What a document may hold in memory, so that a small hostile file cannot fill it.
inline constexpr int deepest_level = 64;
inline constexpr int most_values = 1'000'000;
inline constexpr std::size_t largest_yaml_bytes = 2'000'000;  // the parser can need 240 bytes for each of them
inline constexpr std::size_t largest_text_bytes = 1'000'000'000;

/// The limits as a text for people.
[[nodiscard]] std::string limits_text();
/// Reports that a document exceeds them.
void report_limit(const Position& position, bool too_deep, Diagnostics& diagnostics);
/// Reports that a file has more than `most` bytes.
void report_size(const std::string& file, std::size_t most, Diagnostics& diagnostics);
/// As read_text_file() of document.h, with a limit of one's own.
[[nodiscard]] std::optional<std::string> read_text_file(const std::string& path, std::size_t most_bytes,
                                                        Diagnostics& diagnostics);

}  // namespace hdpsim
