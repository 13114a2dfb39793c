#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "sim/document/json.h"
#include "sim/study/catalog.h"
#include "sim/study/study.h"

namespace hdpsim {

/// What a page can change of a study: its main controls in groups, all declared keys, the policies with their options,
/// and what the catalog has to choose from. Meanings, words and ranges are those of the declarations.
[[nodiscard]] Json controls_json(Catalog& catalog);

/// The page of a session about a study: one HTML file with all that it needs but the figures, which it asks for. Its
/// scripts carry the nonce.
[[nodiscard]] std::string explore_page(const Study& study, Catalog& catalog, std::string_view version,
                                       std::string_view nonce);

}  // namespace hdpsim
