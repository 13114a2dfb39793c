#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace hdpsim {

/// Days, or another figure, with three significant digits and without an exponent above: "0.0124", "29.3", "1480".
[[nodiscard]] std::string days_text(double days);

/// The sizes that are searched: `start` and all that differ from it by multiples of `unit`, up to `most`.
struct SizeRange {
  std::int64_t start = 1;
  std::int64_t unit = 1;
  std::int64_t most = 1;
};

struct SizeAnswer {
  std::optional<std::int64_t> gpus{};
  std::string why{};  ///< Why there is none.
};

/// What twice the GPUs have to gain, as a share of the time, or the search ends after a second doubling without it.
inline constexpr double least_gain = 0.01;

/// The smallest size with at most that many days, by doubling or halving from the start and then by bisection: with
/// days that fall with the size it is the smallest of all. `days_at` is asked again for sizes that it knows; empty: no
/// plan trains there. Where the days do not get short enough, the answer says whether the sizes ended, or the gain.
[[nodiscard]] SizeAnswer smallest_size(const SizeRange& sizes, double days,
                                       const std::function<std::optional<double>(std::int64_t)>& days_at);

}  // namespace hdpsim
