#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace hdpsim {

/// 64 bits of FNV-1a (Fowler, Noll, Vo), going on from `hash`: tells whether a kept result still belongs to its inputs
/// and is still what was written. A text in which one byte is another one never has the same fingerprint.
[[nodiscard]] std::uint64_t fingerprint(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325);

/// Of the contents of a file. MachineError if it cannot be read.
[[nodiscard]] std::uint64_t fingerprint_of_file(const std::filesystem::path& path);

}  // namespace hdpsim
