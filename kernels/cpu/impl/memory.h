#pragma once

#include <cstddef>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels::cpu {

[[nodiscard]] std::size_t physical_memory();

/// Aligned to 256 bytes; in huge pages where it is large enough for them, because packed tiles walk over many pages.
/// DeviceError if there is not so much.
[[nodiscard]] DeviceMemory allocate_memory(std::size_t bytes);

}  // namespace hdpsim::kernels::cpu
