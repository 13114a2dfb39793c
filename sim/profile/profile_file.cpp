#include "sim/profile/profile_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "sim/document/reader.h"
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

// The document of a profile. Empty, with problems reported, if it cannot be read.
std::optional<Value> load_path(const std::string& path, Diagnostics& diagnostics) {
  Diagnostics problems;
  Value document = load_document(path, problems);
  const bool readable = problems.empty();
  diagnostics.append(problems);
  return readable ? std::optional(std::move(document)) : std::nullopt;
}

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(ending);
}

// The document of the profile that `like` names: a file beside the one that names it, or a path from there.
std::optional<Value> load_like(const Value& like, Diagnostics& diagnostics) {
  const auto name = read<std::string>(like, diagnostics);
  if (!name) return std::nullopt;
  const std::filesystem::path folder = std::filesystem::path(like.position.file).parent_path();
  const std::filesystem::path file = folder / (is_path(*name) ? *name : *name + std::string(ending));
  if (is_there(file)) return load_path(file.string(), diagnostics);
  const std::string near = suggestion(*name, names_in(folder.empty() ? "." : folder, ending));
  diagnostics.error(like.position, fmt::format("there is no profile '{}'", file.string()),
                    near.empty() ? "name a profile beside this one, or give its path" : near);
  return std::nullopt;
}

// Fills in what a profile does not state. Figures keep the source that they have: a map with one is taken whole.
void take_missing(Value& own, const Value& base) {
  for (const Value::Entry& entry : base.entries) {
    Value* stated = own.find(entry.key);
    if (stated == nullptr) {
      own.entries.push_back(entry);
    } else if (stated->is_map() && entry.value.is_map() && entry.value.find("source") == nullptr) {
      take_missing(*stated, entry.value);
    }
  }
}

// Takes the parts out of the profile that another is like which that one does not have: its `without`.
void leave_out(const Value& without, Value& base, Diagnostics& diagnostics) {
  if (!without.is_sequence()) {
    diagnostics.error(without.position, "'without' is a list of parts", "write [gemm_fp8_blocks]");
    return;
  }
  for (const Value& part : without.items) {
    if (std::erase_if(base.entries, [&](const Value::Entry& entry) { return entry.key == part.text; }) > 0) continue;
    std::vector<std::string> known;
    for (const Value::Entry& entry : base.entries) known.push_back(entry.key);
    diagnostics.error(part.position, fmt::format("the profile that this one is like has no '{}'", part.text),
                      suggestion(part.text, known));
  }
}

// What a profile says, with what it takes from the one that it is like. Reports a problem if that one cannot be read.
Value with_likes(Value document, Diagnostics& diagnostics, int depth = 0) {
  constexpr int most_likes = 8;
  const Value* like = document.find("like");
  if (like == nullptr) return document;
  if (depth == most_likes) {
    diagnostics.error(like->position, fmt::format("more than {} profiles, each like the next", most_likes),
                      "is one of them like itself?");
    return {};
  }
  const auto base = load_like(*like, diagnostics);
  if (!base) return {};
  Value whole = with_likes(*base, diagnostics, depth + 1);
  for (const char* own : {"schema", "like", "without"}) {
    std::erase_if(whole.entries, [&](const Value::Entry& entry) { return entry.key == own; });
  }
  if (const Value* without = document.find("without")) leave_out(*without, whole, diagnostics);
  take_missing(document, whole);
  return document;
}

}  // namespace

std::optional<DeviceProfile> read_profile(const Value& written, const std::string& name, Diagnostics& diagnostics) {
  Diagnostics problems;
  DeviceProfile profile;
  const Value document = with_likes(written, problems);
  if (problems.empty()) profile_fields(label_of(document)).read(document, "the profile", &profile, problems);
  diagnostics.append(problems);
  if (!problems.empty()) return std::nullopt;
  profile.name = name;
  return profile;
}

namespace {

std::optional<DeviceProfile> load_and_read(const std::string& path, Diagnostics& diagnostics) {
  const auto document = load_path(path, diagnostics);
  if (!document) return std::nullopt;
  return read_profile(*document, std::filesystem::path(path).stem().string(), diagnostics);
}

}  // namespace

std::optional<DeviceProfile> load_profile(const std::string& name_or_path, const std::string& directory,
                                          const Position& asked_at, Diagnostics& diagnostics) {
  if (is_path(name_or_path)) return load_and_read(name_or_path, diagnostics);
  const RenamedProfile* renamed = find_renamed_profile(name_or_path);
  const std::string name(renamed == nullptr ? name_or_path : renamed->name);
  const std::vector<std::string> names = profile_names(directory);
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    diagnostics.error(asked_at, fmt::format("there is no profile '{}'", name_or_path), suggestion(name_or_path, names));
    return std::nullopt;
  }
  return load_and_read((std::filesystem::path(directory) / (name + std::string(ending))).string(), diagnostics);
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
