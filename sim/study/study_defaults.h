#pragma once

#include "sim/document/document.h"

namespace hdpsim {

/// A study with the defaults of what it leaves out put in, where the declarations of the keys say so
/// (KeyNotes::written): a resolved study states them, so that it gives the same results with another default.
[[nodiscard]] Value with_defaults(Value study);

}  // namespace hdpsim
