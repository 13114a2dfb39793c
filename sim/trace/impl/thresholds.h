#pragma once

namespace hdpsim {

/// Shares are reported above 4Ki, 8Ki ... 2Mi tokens.
inline constexpr int first_threshold_log2 = 12;
inline constexpr int last_threshold_log2 = 21;

}  // namespace hdpsim
