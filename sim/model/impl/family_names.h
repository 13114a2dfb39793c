#pragma once

#include <optional>
#include <string_view>

#include "sim/document/document.h"
#include "sim/model/impl/architecture.h"

namespace hdpsim {

/// The family of a `model_type`; null if there is none. A type is the name of the family's class in small letters and
/// without what every class of language models ends in: qwen3_moe is Qwen3MoeForCausalLM's. Of families of one type it
/// is the one that looks for the language model where the file has it.
[[nodiscard]] const Architecture* family_of_type(std::string_view type, const Value& config);

/// The one name of `architectures`; null if there is none, which is reported unless the key is left out.
[[nodiscard]] const Value* stated_name(const Value& config, Diagnostics& diagnostics);

/// The family of the name, or without a name that of the configuration's type; null if none is known.
[[nodiscard]] const Architecture* known_family(const Value& config, const Value* name);

/// A language model of a known family, inside a model of several modalities that is not known.
struct InnerModel {
  const Architecture* family = nullptr;
  std::string_view key;  ///< The key of the map that describes it.
  const Value* config = nullptr;
};
[[nodiscard]] std::optional<InnerModel> inner_model(const Value& config);

}  // namespace hdpsim
