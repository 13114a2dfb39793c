#include "sim/study/key_page.h"

#include <fmt/format.h>

#include <utility>

#include "sim/document/key_schema.h"
#include "sim/study/study_keys.h"

namespace hdpsim {
namespace {

void collect(const std::string& path, const std::vector<KeyText>& keys, std::vector<StudyKey>& all);

void collect(const std::string& path, const KeyShape& shape, std::vector<StudyKey>& all) {
  collect(path, shape.keys, all);
  for (const KeyShape& part : shape.parts) collect(path, part, all);
}

void collect(const std::string& path, const std::vector<KeyText>& keys, std::vector<StudyKey>& all) {
  for (const KeyText& key : keys) {
    if (key.sentence.empty()) continue;
    const std::string own = fmt::format("{}.{}", path, key.name);
    all.push_back({own, &key});
    collect(own, key.shape, all);
  }
}

// What holds where the key is left out: "`8Ki`", "all"; empty for what has no such value.
std::string default_text(const KeyText& key) {
  if (key.notes.required) return "required";
  if (!key.notes.otherwise.empty()) return std::string(key.notes.otherwise);
  return key.fallback.empty() ? "" : fmt::format("`{}`", key.fallback);
}

std::string row(const StudyKey& each) {
  const KeyText& key = *each.key;
  const std::string more = key.notes.see.empty() ? "" : fmt::format(" ([more](README.md#{}))", key.notes.see);
  return fmt::format("| `{}` | {} | {} | {}{} |\n", each.path, key.shape.text(), default_text(key), key.sentence, more);
}

}  // namespace

std::vector<StudyKey> all_study_keys() {
  std::vector<StudyKey> all;
  for (const StudySection& section : study_sections()) collect(section.name, section.keys, all);
  return all;
}

std::string key_text(const std::vector<StudyKey>& keys) {
  std::string text;
  for (const StudyKey& each : keys) {
    const std::string otherwise = default_text(*each.key);
    text += fmt::format("{}: {}{}\n    {}\n", each.path, each.key->shape.text(),
                        otherwise.empty() ? "" : fmt::format(" ({})", otherwise), each.key->sentence);
  }
  return text;
}

std::string key_page() {
  std::string page =
      "# Keys of a study\n\nWritten by `hdpsim keys --format markdown` from the declarations that the reader uses. "
      "[README.md](README.md) says more\nof some, and tells of those that are not here.\n";
  std::string section;
  for (const StudyKey& each : all_study_keys()) {
    const std::string own = each.path.substr(0, each.path.find('.'));
    if (own != section)
      page += fmt::format("\n## {}\n\n| key | values | default | meaning |\n|---|---|---|---|\n", own);
    section = own;
    page += row(each);
  }
  return page;
}

std::string key_schema() {
  std::vector<std::pair<std::string, std::vector<KeyText>>> maps;
  for (const StudySection& section : study_sections()) maps.emplace_back(section.name, section.keys);
  return schema_definitions(maps);
}

}  // namespace hdpsim
