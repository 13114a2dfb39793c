#include "sim/import/impl/imported_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "sim/document/document.h"
#include "sim/document/limits.h"
#include "sim/import/argument.h"
#include "sim/import/configuration.h"
#include "sim/import/frameworks.h"
#include "sim/import/impl/megatron_dialects.h"
#include "sim/import/imported_study.h"

namespace hdpsim {

namespace fs = std::filesystem;

ImportFormat import_format_of(const fs::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".toml") return ImportFormat::torchtitan;
  if (ending == ".log" || ending == ".out" || ending == ".gz") return ImportFormat::log;
  return ending == ".yaml" || ending == ".yml" || ending == ".json" ? ImportFormat::arguments : ImportFormat::script;
}

TrainingRun read_training(const std::vector<ConfigText>& files, const ImportOptions& options,
                          Diagnostics& diagnostics) {
  const auto& [file, text] = files.front();
  const ImportFormat format = import_format_of(file);
  if (format == ImportFormat::arguments && is_configuration(file, text)) {
    return read_configuration(files, options, diagnostics);
  }
  if (format == ImportFormat::script && names_configuration(text)) {
    const std::vector<ConfigText> more(files.begin() + 1, files.end());
    if (auto run = read_launched_configuration(files.front(), more, options, diagnostics)) return std::move(*run);
  }
  if (files.size() > 1) {
    diagnostics.error({files[1].file, 0, 0}, fmt::format("{} is not read with other files", file),
                      "configurations around HuggingFace's models are: train.yaml ds_z3.json");
    return {};
  }
  if (format == ImportFormat::torchtitan) return read_torchtitan(file, text, options, diagnostics);
  Diagnostics found;
  const ArgumentList list =
      format == ImportFormat::arguments ? arguments_of_document(file, text, options.variables, found)
      : has_argument_block(text)        ? arguments_of_log(file, text)
                                        : arguments_of_script(file, text, options.variables, options.command, found);
  if (found.empty()) report_missing_arguments(list, found);
  diagnostics.append(found);
  if (!found.empty()) return {};
  return list.is_of_swift ? read_swift_megatron(list, file, options, diagnostics)
                          : read_megatron(list, file, options, diagnostics);
}

std::optional<ConfigText> text_beside(const std::string& path, const std::string& named_by) {
  constexpr int most_folders = 6;
  const fs::path named(path);
  std::vector<fs::path> places = {fs::path(named_by).parent_path() / named.filename()};
  fs::path folder = fs::absolute(named_by).parent_path();
  for (int i = 0; i < most_folders; ++i, folder = folder.parent_path()) places.push_back(folder / named);
  places.push_back(named);
  for (const fs::path& place : places) {
    std::error_code unknown;
    if (!fs::is_regular_file(place, unknown)) continue;
    Diagnostics none;
    const auto text = read_text_file(place.string(), largest_yaml_bytes, none);
    if (text) return ConfigText{fs::proximate(place, unknown).string(), *text};
  }
  return std::nullopt;
}

}  // namespace hdpsim
