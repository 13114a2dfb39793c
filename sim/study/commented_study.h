#pragma once

#include <map>
#include <string>

#include "sim/document/document.h"

namespace hdpsim {

/// The text of a study with a comment above each key: the sentence by which the key is declared, and the remark that
/// stands under its path (`data.context`), if there is one. Reading the text gives the same study.
[[nodiscard]] std::string commented_study(const Value& study, const std::map<std::string, std::string>& remarks = {});

}  // namespace hdpsim
