#pragma once

#include "sim/document/document.h"

namespace hdpsim {

/// A study with the defaults of missing keys put in, where the declarations of the keys require it (KeyNotes::written):
/// a resolved study states them, so that it gives the same results if a default changes.
[[nodiscard]] Value with_defaults(Value study);

}  // namespace hdpsim
