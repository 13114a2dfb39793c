#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/trace/length_source.h"
#include "sim/trace/length_tally.h"

namespace hdpsim {

/// What there is to know about the lengths of a trace before training on it. Lengths in tokens, shares from 0 to 1.
struct Description {
  struct Percentile {
    double percent = 0;
    std::int64_t length = 0;  ///< Within 0.1 %.
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
};

/// Adds all lengths of a source.
[[nodiscard]] LengthTally tally(LengthSource& source);

/// InputError if there is no length.
[[nodiscard]] Description describe(const LengthTally& tally);
[[nodiscard]] Description describe(LengthSource& source);

[[nodiscard]] std::string text_of(const Description& description);
/// Columns `quantity,at,value`, one row a figure.
[[nodiscard]] std::string csv_of(const Description& description);
/// Schema `hdpsim.lengths/1`.
[[nodiscard]] nlohmann::ordered_json json_of(const Description& description);

}  // namespace hdpsim
