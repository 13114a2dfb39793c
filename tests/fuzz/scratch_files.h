#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "sim/study/catalog.h"
#include "sim/study/study.h"

namespace hdpsim::fuzz {

/// A folder of this process's own, in memory where the system has a place for that; gone when the attack ends.
[[nodiscard]] std::filesystem::path scratch();
/// Another such folder, empty.
[[nodiscard]] std::filesystem::path empty_scratch(std::string_view name);
/// Path of a file in it with this text.
[[nodiscard]] std::string file_with(std::string_view name, std::string_view text);
/// The whole text of a file; empty if there is none.
[[nodiscard]] std::string text_of(const std::filesystem::path& path);

/// Knows the shipped profiles, which take far longer to read than the inputs that name them. Each input has a copy of
/// its own: one that was shared would remember what an input named, and answer the next one without reading.
[[nodiscard]] const Catalog& shipped_catalog();
/// Reads a study as a user's command would.
[[nodiscard]] Study study_of(std::string_view text);

}  // namespace hdpsim::fuzz
