#pragma once

#include "sim/document/document.h"

namespace hdpsim {

// Which studies get a key's default written into them when they are resolved: KeyNotes::written.

[[nodiscard]] bool always_written(const Value& study);
/// Those whose mesh has more than one pipeline stage.
[[nodiscard]] bool written_with_stages(const Value& study);
/// Those that say anything of experts: `moe`, or `mesh.ep`.
[[nodiscard]] bool written_with_experts(const Value& study);

}  // namespace hdpsim
