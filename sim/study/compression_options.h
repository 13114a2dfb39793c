#pragma once

#include <vector>

#include "sim/document/key.h"
#include "sim/model/experts.h"

namespace hdpsim {

/// The keys of `moe.compression`.
[[nodiscard]] const std::vector<KeyText>& compression_keys();

/// Reads `moe.compression`, for copies of so many columns (0: they are not known), into a layout whose division and
/// dispatch have been read:
///   compression: none | {hashes: 6, columns: N, free: false, rate: R}
/// or in place of the rate `similarity: S, alike: N`, or `file: VECTORS`, of which it is measured (token_clusters.h).
/// What does not fit the layout is reported.
void read_compression(const Value& value, std::int64_t copy_columns, ExpertLayout& layout, Diagnostics& diagnostics);

}  // namespace hdpsim
