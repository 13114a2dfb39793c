#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/document/json.h"
#include "sim/study/catalog.h"

namespace hdpsim {

/// What a page can change of a study: its main controls in groups, all declared keys, the policies with their options,
/// and what the catalog has to choose from. Meanings, words and ranges are those of the declarations.
[[nodiscard]] Json controls_json(Catalog& catalog);

}  // namespace hdpsim
