#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <string_view>
#include <vector>

#include "sim/model/recompute.h"

namespace hdpsim::test {

/// The name of a set of modules, or the modules: `full`, `[norm, activation]`.
inline std::string recompute_text(Recompute recompute) {
  for (std::size_t i = 0; i < named_recomputes.size(); ++i) {
    if (recompute == named_recomputes.at(i)) return std::string(recompute_names.at(i));
  }
  std::vector<std::string_view> modules;
  for (std::size_t i = 0; i < layer_modules; ++i) {
    if (recompute.has(static_cast<LayerModule>(i))) modules.push_back(layer_module_names.at(i));
  }
  return fmt::format("[{}]", fmt::join(modules, ", "));
}

}  // namespace hdpsim::test
