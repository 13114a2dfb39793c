#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/import/training_run.h"
#include "sim/study/catalog.h"

namespace hdpsim {

/// A training configuration as a study.
struct ImportedStudy {
  std::string text;                                 ///< The study, with comments; the notes at its end.
  std::optional<std::string> model;                 ///< A HuggingFace configuration (JSON), if no preset has the shape.
  std::filesystem::path model_file;                 ///< Where it belongs: in the folder of the study.
  ImportNotes notes;                                ///< What the user has to know of the import.
  std::string file;                                 ///< Of which it was made.
  std::map<std::string, Position> places;           ///< Where that states a key of the study, by its path.
  std::map<std::string, std::string> sources = {};  ///< By name, the texts that these places are in.
};

/// The format of a file of a training framework, by its name: `.toml` is torchtitan's, `.yaml`, `.yml` and `.json` hold
/// a configuration (sim/import/configuration.h) or arguments of Megatron-LM, `.log`, `.out` and `.gz` are logs of it,
/// everything else is a shell script, or a log, too, if it lists arguments as logs do.
enum class ImportFormat : std::uint8_t { script, arguments, torchtitan, log };
[[nodiscard]] ImportFormat import_format_of(const std::filesystem::path& file);

/// Turns a file, or files that belong together, into a study that will be the file `out`. InputError with every problem
/// at its place. The text has not been checked as a study: what its cluster and its profile allow shows when it is
/// read.
[[nodiscard]] ImportedStudy import_study(const std::vector<std::string>& files, const std::filesystem::path& out,
                                         const ImportOptions& options, Catalog& catalog);
/// The same for the text of a file that is not read from the disk.
[[nodiscard]] ImportedStudy import_text(const std::string& file, const std::string& text,
                                        const std::filesystem::path& out, const ImportOptions& options,
                                        Catalog& catalog);

/// The problems that a reader found in the text of an imported study, which was read under `name`, at the places of the
/// file that it was made of: each at the argument that states the study's key, or at the file as a whole where it
/// follows from no argument. Problems of other files stay where they are.
[[nodiscard]] Diagnostics at_source(const ImportedStudy& study, const std::string& name, const Diagnostics& problems);

}  // namespace hdpsim
