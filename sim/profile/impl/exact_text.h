#pragma once

#include <string>

#include "sim/base/units.h"

namespace hdpsim {

/// Text with a unit that reads back as the same quantity, in the largest unit that leaves a short number.
[[nodiscard]] std::string exact_text(Duration duration);
[[nodiscard]] std::string exact_text(Bytes bytes);
[[nodiscard]] std::string exact_text(Bandwidth bandwidth);
[[nodiscard]] std::string exact_text(FlopRate rate);

}  // namespace hdpsim
