#pragma once

#include "sim/base/diagnostic.h"

namespace hdpsim {

// What a document may hold in memory, so that a small hostile file cannot fill it.
inline constexpr int deepest_level = 64;
inline constexpr int most_values = 1'000'000;

/// The limits as a text for people.
[[nodiscard]] std::string limits_text();
/// Reports that a document exceeds them.
void report_limit(const Position& position, bool too_deep, Diagnostics& diagnostics);

}  // namespace hdpsim
