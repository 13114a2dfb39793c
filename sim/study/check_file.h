#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/document/document.h"
#include "sim/study/catalog.h"

namespace hdpsim {

/// Every kind of file that the user can hand in.
enum class FileKind { study, plan, cluster, model, profile, lengths };

/// "study", "plan", ...: in the order of FileKind.
[[nodiscard]] const std::vector<std::string>& file_kind_names();

/// By the extension, by `schema`, or by the keys that only one kind has. Nothing if none of these tells.
[[nodiscard]] std::optional<FileKind> kind_of_file(const std::string& path, const Value& document);

/// Reads a file as a user's command would, and says in a line what is in it. InputError with every problem. Without
/// `kind` the file tells what it is.
[[nodiscard]] std::string check_file(const std::string& path, std::optional<FileKind> kind, Catalog& catalog);

}  // namespace hdpsim
