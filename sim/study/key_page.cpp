#include "sim/study/key_page.h"

#include <fmt/format.h>

#include <vector>

#include "sim/document/key_schema.h"

namespace hdpsim {
namespace {

// The meaning of a missing key: "`8Ki`", "all"; empty if there is none.
std::string default_text(const KeyText& key) {
  if (key.notes.required) return "required";
  if (!key.notes.otherwise.empty()) return std::string(key.notes.otherwise);
  return key.fallback.empty() ? "" : fmt::format("`{}`", key.fallback);
}

std::string row(const StudyKey& each) {
  const KeyText& key = *each.key;
  const std::string more = key.notes.see.empty() ? "" : fmt::format(" ([more](README.md#{}))", key.notes.see);
  const std::string off =
      key.notes.mechanism.empty() ? "" : fmt::format("; `--without {}` turns it off", key.notes.mechanism);
  return fmt::format("| `{}` | {} | {} | {}{}{} |\n", each.path, key.shape.text(), default_text(key), key.sentence, off,
                     more);
}

}  // namespace

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
      "# Keys of a study\n\nWritten by `hdpsim keys --format markdown` from the declarations that the reader uses; "
      "[README.md](README.md) says more\nof some. Below `plans` stand the policies with their options.\n\n"
      "| key | values | default | meaning |\n|---|---|---|---|\n";
  for (const StudyKey& each : all_study_keys()) page += row(each);
  return page;
}

std::string key_schema() {
  std::vector<KeyText> keys;
  for (const StudySection& section : study_sections()) keys.push_back(section.text);
  return json_schema("A study of hdpsim", keys);
}

}  // namespace hdpsim
