#pragma once

#include <string>

#include "sim/model/model_config.h"
#include "tests/support/catch.h"

namespace hdpsim::test {

/// A model that the project ships.
inline Transformer preset(const std::string& name) {
  Diagnostics diagnostics;
  const auto model = load_model_preset(name, HDPSIM_SOURCE_DIR "/configs/models", {}, diagnostics);
  INFO(diagnostics.text());
  REQUIRE(model.has_value());
  return *model;
}

}  // namespace hdpsim::test
