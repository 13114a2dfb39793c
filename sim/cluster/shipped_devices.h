#pragma once

#include <string_view>

namespace hdpsim::shipped {

/// The text of configs/devices.yaml when the program was built.
extern const std::string_view devices;

}  // namespace hdpsim::shipped
