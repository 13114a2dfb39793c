#pragma once

#include <string>
#include <vector>

#include "sim/study/study_keys.h"

namespace hdpsim {

/// The help text of some keys for a terminal: path, values, default and meaning.
[[nodiscard]] std::string key_text(const std::vector<StudyKey>& keys);
/// The reference page of all declared keys, in Markdown: configs/studies/KEYS.md.
[[nodiscard]] std::string key_page();
/// The JSON schema of a study: configs/schemas/study.schema.json.
[[nodiscard]] std::string key_schema();

}  // namespace hdpsim
