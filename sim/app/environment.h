#pragma once

#include <cstdlib>
#include <string_view>

namespace hdpsim::app {

/// Value of an environment variable; empty if it is not set.
[[nodiscard]] inline std::string_view environment_variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace hdpsim::app
