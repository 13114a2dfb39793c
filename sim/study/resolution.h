#pragma once

#include "sim/document/document.h"

namespace hdpsim {

// Conditions for KeyNotes::written: in which studies the default of a key is written when they are resolved.

[[nodiscard]] bool always_written(const Value& study);
/// Studies whose mesh has more than one pipeline stage.
[[nodiscard]] bool written_with_stages(const Value& study);
/// Studies that state anything about experts: `moe`, or `mesh.ep`.
[[nodiscard]] bool written_with_experts(const Value& study);

}  // namespace hdpsim
