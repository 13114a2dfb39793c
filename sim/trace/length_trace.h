#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/halves.h"
#include "sim/trace/length_source.h"

namespace hdpsim {

/// The lengths of a whole trace in memory: 8 bytes per document, 16 with steps.
struct LengthTrace {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> steps;  ///< Empty, or one per document.
  std::string column{};             ///< LengthSource::column().
  std::optional<Halves> halves{};   ///< In the order of the source.
};

/// Reads a source to its end. InputError as the source throws it, or if only some of the lengths have a step.
[[nodiscard]] LengthTrace collect(LengthSource& source);

}  // namespace hdpsim
