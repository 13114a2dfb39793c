#pragma once

#include <cstdint>

namespace hdpsim::kernels::exec {

/// 64 well-mixed bits of two numbers: the finalizer of splitmix64 (Steele, Lea and Flood 2014), applied to each in
/// turn.
[[nodiscard]] inline std::uint64_t mixed(std::uint64_t key, std::uint64_t value) {
  const auto mix = [](std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  };
  constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15ULL;
  return mix(mix(key + golden_ratio) + golden_ratio * (value + 1));
}

/// A number in [0, 1), with 53 bits.
[[nodiscard]] inline double unit_hash(std::uint64_t key, std::uint64_t value) {
  return static_cast<double>(mixed(key, value) >> 11) * 0x1p-53;
}

}  // namespace hdpsim::kernels::exec
