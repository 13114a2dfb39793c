#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hdpsim {

/// In which order the documents of a file are trained: at random, as they stand there, or by the steps that it names.
enum class TraceOrder : std::uint8_t { shuffle, file, steps };

/// The rows of a trace in the order in which they are read; null: as they stand.
using RowOrder = std::shared_ptr<const std::vector<std::uint32_t>>;

/// Rows in random order, every order as likely, from RandomStream(seed, "order of documents"): linear time, 4 bytes a
/// row. At most 2^32 rows (checked).
[[nodiscard]] RowOrder make_random_order(std::size_t rows, std::uint64_t seed);

}  // namespace hdpsim
