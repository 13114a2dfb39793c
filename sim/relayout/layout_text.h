#pragma once

#include <string>

#include "sim/relayout/relayout.h"

namespace hdpsim {

/// "0: 2+5+11+20+21+21 layers x 31; others x 33; without 3": the pipelines whose layers are not those of the uniform
/// layout, with their micro-batches, then the micro-batches of the others, the devices that do nothing, and whether not
/// all ways to share slow groups were tried. Empty for the uniform layout.
[[nodiscard]] std::string layout_text(const Relayout& layout, const RelayoutJob& job);

}  // namespace hdpsim
