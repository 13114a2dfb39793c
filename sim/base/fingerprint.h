#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace hdpsim {

/// A 64-bit FNV-1a hash (Fowler, Noll, Vo) that continues from `hash`. It tells whether a kept result still belongs to
/// its inputs and is still what was written. Two texts that differ in one byte never have the same fingerprint.
[[nodiscard]] std::uint64_t fingerprint(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325);

/// The fingerprint of the contents of a file. MachineError if it cannot be read.
[[nodiscard]] std::uint64_t fingerprint_of_file(const std::filesystem::path& path);

}  // namespace hdpsim
