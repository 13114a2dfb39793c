#pragma once

#include <cstddef>

namespace hdpsim::kernels {

inline constexpr std::size_t mebibyte = std::size_t{1} << 20;

}  // namespace hdpsim::kernels
