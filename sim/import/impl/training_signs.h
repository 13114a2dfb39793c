#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace hdpsim {

/// One of these arguments is in every training run of Megatron-LM.
inline constexpr std::array<std::string_view, 3> signs_of_training = {"--num-layers", "--hidden-size",
                                                                      "--micro-batch-size"};

/// Whether a text holds one of them, with dashes or underscores.
[[nodiscard]] inline bool names_training(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_') text[i] = '-';
  }
  return std::any_of(signs_of_training.begin(), signs_of_training.end(),
                     [&](std::string_view sign) { return text.find(sign) != std::string::npos; });
}

}  // namespace hdpsim
