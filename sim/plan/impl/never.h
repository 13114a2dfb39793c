#pragma once

#include <limits>

namespace hdpsim {

/// The end of what cannot be done: later than all that can.
inline constexpr double never = std::numeric_limits<double>::infinity();

}  // namespace hdpsim
