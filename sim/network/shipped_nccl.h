#pragma once

#include <string_view>

namespace hdpsim::shipped {

/// The text of configs/nccl/2.25.yaml as of the build of the program.
extern const std::string_view nccl_constants;

}  // namespace hdpsim::shipped
