#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/diagnostic.h"

namespace hdpsim {

// Limits on what a file may ask of its reader. Each is far above what is meant, and keeps a file that is not what it
// should be (an endless device, a damaged or hostile file) from filling memory or taking more than about a second.

// Limits of a document in memory.
inline constexpr int deepest_level = 64;
inline constexpr int most_values = 400'000;
inline constexpr std::size_t largest_yaml_bytes = 2'000'000;  // the parser can need 240 bytes for each of them
inline constexpr std::size_t largest_text_bytes = 1'000'000'000;
inline constexpr std::size_t largest_stream_bytes = 64'000'000;  // for a pipe or a device
inline constexpr std::size_t largest_shown_bytes = 16'000'000;   // a larger text is not kept for caret lines

// Limits of text that is read piece by piece, from files of any size.
inline constexpr std::size_t longest_line = std::size_t{16} << 20;  // bytes; also for one value of a JSON document
inline constexpr int most_empty_lines = 10'000'000;                 // blank lines and comments of one file
inline constexpr std::size_t most_columns = 10'000;                 // columns of a table, or fields of a line of JSON
inline constexpr std::int64_t most_table_rows = 1'000'000;          // for a table that is held in memory
inline constexpr std::int64_t most_loaded_lengths = std::int64_t{1} << 28;
inline constexpr std::int64_t most_problems = 1000;  // for one file: reading stops there

/// The limits as a text for people.
[[nodiscard]] std::string limits_text();
/// Reports that a document exceeds them.
void report_limit(const Position& position, bool too_deep, Diagnostics& diagnostics);
/// Reports that a file has more than `most` bytes.
void report_size(const std::string& file, std::size_t most, Diagnostics& diagnostics);
/// Works as read_text_file() of document.h does, with the given limit.
[[nodiscard]] std::optional<std::string> read_text_file(const std::string& path, std::size_t most_bytes,
                                                        Diagnostics& diagnostics);

}  // namespace hdpsim
