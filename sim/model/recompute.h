#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hdpsim {

/// Which activations of a layer the backward pass computes again (Korthikanti et al. 2022).
enum class Recompute : std::uint8_t {
  none,
  selective,  ///< The attention core: what lies between queries, keys and values and its output.
  full,       ///< Everything: only the layer's input is kept.
};
inline constexpr std::array<std::string_view, 3> recompute_names = {"none", "selective", "full"};

}  // namespace hdpsim
