#pragma once

#include <string>

#include "sim/validate/validation_set.h"

namespace hdpsim {

/// A set of measured steps, and its file for messages.
struct FitSource {
  ValidationSet set;
  std::string path;
};

}  // namespace hdpsim
