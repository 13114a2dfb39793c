#pragma once

#include <filesystem>
#include <string_view>

namespace hdpsim {

/// Puts a whole file in its place or leaves what was there: it is written beside it under a temporary name, then
/// renamed. A device or a pipe is written to as it is. MachineError if that fails; nothing is left behind.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Creates a folder and those above it, and makes sure that files can be written there. MachineError if not.
void prepare_folder(const std::filesystem::path& path);

}  // namespace hdpsim
