#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/document/document.h"
#include "sim/model/impl/architecture.h"

namespace hdpsim {

/// How far a family explains a configuration that need not be one of it.
struct Resemblance {
  const Architecture* family = nullptr;
  std::size_t read = 0;             ///< Keys of the configuration that the family reads.
  std::vector<std::string> unread;  ///< Keys that describe a model's shape and that the family does not read.
};

/// What a family makes of the keys of a configuration. A key describes a shape if it has a whole number or a list, and
/// one of the words of which such keys are made (layers, heads, size, rank, ...).
[[nodiscard]] Resemblance resemblance(const Architecture& family, const Value& config);

/// The family that reads most of the shape of a configuration, the first of several.
[[nodiscard]] Resemblance nearest_family(const Value& config);

}  // namespace hdpsim
