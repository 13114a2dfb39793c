#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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

}  // namespace hdpsim
