#pragma once

#include <cstddef>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels::cpu {

[[nodiscard]] std::size_t physical_memory();

/// Memory aligned to 256 bytes; in huge pages if it is large enough for them, because packed tiles touch many pages.
/// DeviceError if there is not as much.
[[nodiscard]] DeviceMemory allocate_memory(std::size_t bytes);

}  // namespace hdpsim::kernels::cpu
