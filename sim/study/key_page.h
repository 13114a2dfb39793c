#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

/// A declared key of a study with its path: `mesh.tp`.
struct StudyKey {
  std::string path;
  const KeyText* key;
};

/// All declared keys that have a sentence, section by section; keys of maps within a section too.
[[nodiscard]] std::vector<StudyKey> all_study_keys();

/// What people are told of some keys, for a terminal: path, values, default and meaning.
[[nodiscard]] std::string key_text(const std::vector<StudyKey>& keys);
/// The reference page of all declared keys, in Markdown: configs/studies/KEYS.md.
[[nodiscard]] std::string key_page();
/// The JSON schemas of all declared sections by their names: `$defs` of configs/schemas/study.schema.json.
[[nodiscard]] std::string key_schema();

}  // namespace hdpsim
