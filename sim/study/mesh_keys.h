#pragma once

#include "sim/document/key_table.h"
#include "sim/study/point.h"

namespace hdpsim {

/// The keys of `mesh`. What they say together is checked by read_mesh().
[[nodiscard]] const KeyTable<PointSpec>& mesh_keys();

}  // namespace hdpsim
