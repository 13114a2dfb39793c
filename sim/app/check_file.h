#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/document/document.h"
#include "sim/study/catalog.h"

namespace hdpsim::app {

/// Every kind of file that the user can hand in.
enum class FileKind { study, plan, cluster, model, profile, lengths, validation, scheduler, samples, prices, tasks };

/// The names of the kinds in the order of FileKind: "study", "plan", ...
[[nodiscard]] const std::vector<std::string>& file_kind_names();

/// The kind of a file by its extension, by `schema`, or by keys that only one kind has. Empty if none of these decides.
[[nodiscard]] std::optional<FileKind> kind_of_file(const std::string& path, const Value& document);

/// The contents of a file that was checked.
struct CheckedFile {
  std::string summary;             ///< One line.
  std::vector<std::string> notes;  ///< How it was read, as far as that is not obvious, and what a model leaves out.
};

/// Reads a file as a user's command would. InputError with every problem. Without `kind` the file itself decides what
/// it is.
[[nodiscard]] CheckedFile check_file(const std::string& path, std::optional<FileKind> kind, Catalog& catalog);

}  // namespace hdpsim::app
