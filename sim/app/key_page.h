#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/study_keys.h"

namespace hdpsim::app {

/// The files whose keys are declared.
enum class KeyedFile : std::uint8_t { study, cluster, validation, profile, prices, tasks };
/// Their names, in the order of the enumeration: `study`, `cluster`, ...
[[nodiscard]] const std::vector<std::string>& keyed_file_names();

/// All declared keys of a file that have a sentence, those of maps after their map. A `*` in a path stands for a name
/// that the file chooses: `tiers.*.fan_in`.
[[nodiscard]] std::vector<StudyKey> keys_of(KeyedFile file);
/// The help text of some keys for a terminal: path, values, default and meaning.
[[nodiscard]] std::string key_text(const std::vector<StudyKey>& keys);
/// The reference page of all declared keys, in Markdown: configs/studies/KEYS.md, configs/clusters/KEYS.md, ... That of
/// a study also says what the names in results mean.
[[nodiscard]] std::string key_page(KeyedFile file);
/// The JSON schema: configs/schemas/study.schema.json, cluster.schema.json, ...
[[nodiscard]] std::string key_schema(KeyedFile file);

}  // namespace hdpsim::app
