#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/document/document.h"
#include "sim/study/catalog.h"

namespace hdpsim {

/// Every kind of file that the user can hand in.
enum class FileKind { study, plan, cluster, model, profile, lengths, validation };

/// "study", "plan", ...: in the order of FileKind.
[[nodiscard]] const std::vector<std::string>& file_kind_names();

/// By the extension, by `schema`, or by the keys that only one kind has. Nothing if none of these tells.
[[nodiscard]] std::optional<FileKind> kind_of_file(const std::string& path, const Value& document);

/// What is in a file.
struct CheckedFile {
  std::string summary;             ///< One line.
  std::vector<std::string> notes;  ///< Of a cluster: how it was read, as far as that is not plain.
};

/// Reads a file as a user's command would. InputError with every problem. Without `kind` the file tells what it is.
[[nodiscard]] CheckedFile check_file(const std::string& path, std::optional<FileKind> kind, Catalog& catalog);

}  // namespace hdpsim
