#pragma once

#include <string>
#include <string_view>

#include "sim/study/catalog.h"
#include "sim/study/study.h"

namespace hdpsim {

/// The page of a session about a study: one HTML file with all that it needs but the figures, which it asks for. Its
/// scripts carry the nonce.
[[nodiscard]] std::string explore_page(const Study& study, Catalog& catalog, std::string_view version,
                                       std::string_view nonce);

}  // namespace hdpsim
