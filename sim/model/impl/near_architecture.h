#pragma once

#include <cstddef>
#include <string>
#include <string_view>
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

/// The map that describes a family's language model in a configuration; nullptr if it has none.
[[nodiscard]] const Value* language_model(const Architecture& family, const Value& config);

/// Whether a value says something: null, false, 0 and an empty list say that there is nothing of what its key names.
[[nodiscard]] bool says_something(const Value& value);

/// Whether a family takes the widths that a configuration states for what they are, and no default for one that it
/// leaves out or for parts of which it says nothing: only then may the file be proposed as one of that family.
[[nodiscard]] bool takes_widths_as_stated(const Architecture& family, const Value& config);

/// Whether a family reads a key of its language model.
[[nodiscard]] bool reads_key(const Architecture& family, std::string_view key);

/// What a family makes of the keys of a configuration. A key describes a shape if it has a whole number other than 0, a
/// list or a map, and one of the words of which such keys are made (layers, heads, size, rank, ...).
[[nodiscard]] Resemblance resemblance(const Architecture& family, const Value& config);

/// All families, those first that read most of the shape of a configuration.
[[nodiscard]] std::vector<Resemblance> by_resemblance(const Value& config);

}  // namespace hdpsim
