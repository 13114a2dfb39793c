#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"
#include "sim/model/impl/architecture.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// Families that may take a key for a repetition of what other keys say.
enum class Repetition : std::uint8_t { of_none, of_families_with_experts, of_families_with_linear_mixing };

/// A key by which a configuration says that its model has something without which parameters or work are those of
/// another model. A family reads it, or the configuration is refused.
struct DecidingKey {
  std::string_view name;
  std::string_view what;  ///< What the model has.
  Repetition repetition = Repetition::of_none;
};
[[nodiscard]] const std::vector<DecidingKey>& deciding_keys();

/// Reports the deciding keys of a language model that say something and that a family does not read.
void refuse_unread(const Architecture& family, const Value& language, Diagnostics& diagnostics);

/// Reports those of them that no family reads, of a configuration that is of none.
void tell_deciding(const Value& language, Diagnostics& diagnostics);

/// Whether any family reads a key.
[[nodiscard]] bool is_read(std::string_view key);

/// Adds to what a model leaves out the other keys of its configuration that describe a shape and that its family does
/// not read.
void tell_unread(const Architecture& family, const Value& config, Transformer& model);

/// "'a', 'b' and 3 more".
[[nodiscard]] std::string first_of(const std::vector<std::string>& keys);

}  // namespace hdpsim
