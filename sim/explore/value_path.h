#pragma once

#include <string>

#include "sim/document/document.h"

namespace hdpsim {

/// The dotted path of the innermost value of a document that stands at a place, `data.context` or `plans.0`: the
/// control of a page that a problem belongs to. Empty if none but the document itself does.
[[nodiscard]] std::string path_of_place(const Value& document, const Position& place);

}  // namespace hdpsim
