#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "sim/base/units.h"

namespace hdpsim {

/// The memory that this process can still get: the least of what the machine has free, of the limit of its control
/// group, and of what its limit of address space leaves. Empty where none of them is known. It decides whether work is
/// begun, and nothing of a result.
[[nodiscard]] std::optional<Bytes> free_memory();

/// MachineError if work needs more memory than there is: "TEXT takes about 21 GB of memory, and 8 GB are free".
void require_memory(std::string_view work, double bytes);

/// MachineError if the disk of a file that is to be written has no room for it. What is no file, such as a pipe, takes
/// any amount.
void require_disk(const std::filesystem::path& file, double bytes);

}  // namespace hdpsim
