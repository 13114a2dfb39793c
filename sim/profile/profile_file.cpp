#include "sim/profile/profile_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/profile/impl/profile_fields.h"
#include "sim/profile/renamed_profiles.h"

namespace hdpsim {
namespace {

constexpr std::string_view ending = ".yaml";

// The fields of a profile's file. Those of a profile whose label cannot be read need what all need.
const FieldList& profile_fields(ProfileLabel label) {
  return *fields_of<DeviceProfile>(may_have_samples(label));
}

ProfileLabel label_of(const Value& document) {
  const Value* provenance = document.find("provenance");
  const Value* label = provenance == nullptr ? nullptr : provenance->find("label");
  for (const auto& [word, value] : words_of<ProfileLabel>(profile_labels, profile_label_name)) {
    if (label != nullptr && label->text == word) return value;
  }
  return Provenance{}.label;
}

std::optional<DeviceProfile> load_path(const std::string& path, Diagnostics& diagnostics) {
  Diagnostics problems;
  const Value document = load_document(path, problems);
  const bool readable = problems.empty();
  diagnostics.append(problems);
  if (!readable) return std::nullopt;
  return read_profile(document, std::filesystem::path(path).stem().string(), diagnostics);
}

}  // namespace

std::optional<DeviceProfile> read_profile(const Value& document, const std::string& name, Diagnostics& diagnostics) {
  Diagnostics problems;
  DeviceProfile profile;
  profile_fields(label_of(document)).read(document, "the profile", &profile, problems);
  diagnostics.append(problems);
  if (!problems.empty()) return std::nullopt;
  profile.name = name;
  return profile;
}

std::optional<DeviceProfile> load_profile(const std::string& name_or_path, const std::string& directory,
                                          const Position& asked_at, Diagnostics& diagnostics) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(ending)) {
    return load_path(name_or_path, diagnostics);
  }
  const RenamedProfile* renamed = find_renamed_profile(name_or_path);
  const std::string name(renamed == nullptr ? name_or_path : renamed->name);
  const std::vector<std::string> names = profile_names(directory);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    diagnostics.error(asked_at, fmt::format("there is no profile '{}'", name_or_path), suggestion(name_or_path, names));
    return std::nullopt;
  }
  return load_path((std::filesystem::path(directory) / (name + std::string(ending))).string(), diagnostics);
}

std::vector<KeyText> profile_keys() {
  return profile_fields(ProfileLabel::measured).keys();
}

std::vector<std::string> profile_names(const std::string& directory) {
  return names_in(directory, ending);
}

std::string profile_text(const DeviceProfile& profile) {
  return to_yaml(profile_fields(profile.provenance.label).written(&profile));
}

std::string_view profile_label_name(ProfileLabel label) {
  switch (label) {
    case ProfileLabel::measured:
      return "measured";
    case ProfileLabel::published:
      return "published";
    case ProfileLabel::datasheet:
      return "datasheet";
    case ProfileLabel::fitted:
      return "fitted";
    case ProfileLabel::traced:
      return "traced";
  }
  return "";
}

}  // namespace hdpsim
