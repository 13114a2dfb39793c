#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/halves.h"
#include "sim/trace/length_distribution.h"

namespace hdpsim {

/// One document of a trace.
struct Length {
  std::int64_t tokens = 0;
  std::optional<std::int64_t> step = {};  ///< The training step to which the trace assigns it, if it does.

  friend bool operator==(const Length&, const Length&) = default;
};

/// Lengths one after the other, from a file or a generator, in memory that does not grow with their number.
class LengthSource {
 public:
  LengthSource() = default;
  LengthSource(const LengthSource&) = delete;
  LengthSource& operator=(const LengthSource&) = delete;
  virtual ~LengthSource() = default;

  /// The next length; empty after the last one. A file with mistakes is read to its end, so that all of them are
  /// reported at once: an InputError is then thrown after the last length.
  [[nodiscard]] virtual std::optional<Length> next() = 0;
  /// The column of the lengths, `a+b` if they are added up, if nobody has named it and it was found by a usual name;
  /// otherwise empty. Known once next() has been called.
  [[nodiscard]] virtual std::string column() const { return {}; }
};

/// `count` lengths of a distribution, from RandomStream(seed, "generate").
[[nodiscard]] std::unique_ptr<LengthSource> make_drawn_lengths(LengthDistributionPtr distribution, std::uint64_t seed,
                                                               std::int64_t count);

/// The lengths of a whole trace in memory: 8 bytes per document, 16 with steps.
struct LengthTrace {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> steps;  ///< Empty, or one per document.
  std::string column{};             ///< LengthSource::column().
  std::optional<Halves> halves{};   ///< In the order of the source.
};

/// Reads a source to its end. InputError as the source throws it, or if only some of the lengths have a step.
[[nodiscard]] LengthTrace collect(LengthSource& source);

/// In which order the documents of a file are trained: at random, in the order of the file, or by the steps that it
/// names.
enum class TraceOrder : std::uint8_t { shuffle, file, steps };

/// The rows of a trace in the order in which they are read; null: that of the file.
using RowOrder = std::shared_ptr<const std::vector<std::uint32_t>>;

/// Rows in random order, every order as likely, from RandomStream(seed, "order of documents"): linear time, 4 bytes a
/// row. At most 2^32 rows (checked).
[[nodiscard]] RowOrder make_random_order(std::size_t rows, std::uint64_t seed);

}  // namespace hdpsim
