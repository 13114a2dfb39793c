#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/document/json.h"
#include "sim/trace/halves.h"
#include "sim/trace/length_source.h"
#include "sim/trace/length_tally.h"

namespace hdpsim {

/// Shares are reported above 4Ki, 8Ki ... 2Mi tokens.
inline constexpr int first_threshold_log2 = 12;
inline constexpr int last_threshold_log2 = 21;

/// Statistics of the lengths of a trace. Lengths in tokens, shares from 0 to 1.
struct Description {
  struct Percentile {
    double percent = 0;
    std::int64_t length = 0;  ///< Exact within 0.1 %.
  };
  /// Exact shares of all sequences, of all tokens, and of the sum of squared lengths (the work of attention).
  struct Share {
    std::int64_t above = 0;
    double sequences = 0;
    double tokens = 0;
    double squares = 0;
  };

  std::int64_t count = 0;
  std::int64_t tokens = 0;
  double mean = 0;
  double deviation = 0;  ///< Population standard deviation.
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::vector<Percentile> percentiles;  ///< p1 ... p99.99
  std::vector<Share> shares;            ///< Above 4Ki, 8Ki ... 2Mi.
  std::optional<Halves> halves{};       ///< Of a source, in its order.
};

/// Adds all lengths of a source.
[[nodiscard]] LengthTally tally(LengthSource& source);

/// The description of a tally. InputError if it has no length.
[[nodiscard]] Description describe(const LengthTally& tally);
[[nodiscard]] Description describe(LengthSource& source);

[[nodiscard]] std::string text_of(const Description& description);
/// The description as CSV with the columns `quantity,at,value`, one row per figure.
[[nodiscard]] std::string csv_of(const Description& description);
/// The description as JSON, schema `hdpsim.lengths/1`.
[[nodiscard]] Json json_of(const Description& description);

}  // namespace hdpsim
