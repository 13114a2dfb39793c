#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/document/document.h"
#include "sim/document/reader.h"
#include "tests/support/catch.h"

namespace hdpsim {

// What other systems' own code made of batches that were drawn for the purpose.

inline std::int64_t number(const Value& value) {
  Diagnostics diagnostics;
  return read<std::int64_t>(value, diagnostics).value();
}

inline std::vector<std::int64_t> numbers(const Value& list) {
  std::vector<std::int64_t> found;
  for (const Value& item : list.items) found.push_back(number(item));
  return found;
}

/// The cases of published/NAME.json.
inline std::vector<Value> cases_of(const std::string& name) {
  const std::string folder = HDPSIM_SOURCE_DIR "/tests/unit/plan/published/";
  Diagnostics diagnostics;
  const Value file = load_document(folder + name + ".json", diagnostics);
  INFO(diagnostics.text());
  REQUIRE(file.find("cases") != nullptr);
  return file.find("cases")->items;
}

}  // namespace hdpsim
