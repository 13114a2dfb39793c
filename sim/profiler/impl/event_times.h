#pragma once

#include <string_view>

namespace hdpsim {

/// Why an event cannot last so long; empty if it can. Nothing on a device lasts longer than the ten minutes after which
/// PyTorch ends a job that waits for a collective: such times are of another unit, or the file is damaged.
[[nodiscard]] constexpr std::string_view problem_of_duration(double duration_us, bool is_on_device) {
  constexpr double longest_us = 600e6;
  if (duration_us < 0) return "its duration is negative";
  if (is_on_device && duration_us > longest_us) return "it runs on a device for more than ten minutes";
  return {};
}

}  // namespace hdpsim
