#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/units.h"

namespace hdpsim {

/// The value of a user's text, or the reason why it has none.
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string error;  ///< The problem, without the place.
  std::string help;   ///< The right way to write it.
};

/// A count: `4096`, `256Ki`, `2Mi`, `1Gi` (powers of 1024), `32k`, `100M` (powers of 1000). Integers within 64 bits
/// only.
[[nodiscard]] Parsed<std::int64_t> parse_count(std::string_view text);
/// A time with its unit: `5 us`, `1.5ms`, `2 s`, `300 ns`, `10 min`, `2 h`.
[[nodiscard]] Parsed<Duration> parse_duration(std::string_view text);
/// A time in seconds, which may exceed a Duration; also in days and years of 365 days: `90 d`, `3 years`.
[[nodiscard]] Parsed<double> parse_seconds(std::string_view text);
/// An amount of data with its unit: `80 GB` (1e9), `64 MiB` (2^20), `512 B`.
[[nodiscard]] Parsed<Bytes> parse_bytes(std::string_view text);
/// A data rate with its unit: `50 GB/s` (bytes) or `400 Gbit/s` (bits).
[[nodiscard]] Parsed<Bandwidth> parse_bandwidth(std::string_view text);
/// An arithmetic speed with its unit: `312 TFLOP/s`, `90 GFLOP/s`, `1.2 PFLOP/s`.
[[nodiscard]] Parsed<FlopRate> parse_flop_rate(std::string_view text);

/// `256Ki`, `2Mi` where the count is a whole number of them, otherwise plain digits.
[[nodiscard]] std::string count_text(std::int64_t count);
/// The duration with three significant digits, in the largest unit that leaves at least 1: `1.52 ms`, `25.5 s`.
[[nodiscard]] std::string duration_text(Duration duration);
/// The same of a time in seconds.
[[nodiscard]] std::string seconds_text(double seconds);
/// The amount with three significant digits, in powers of 1000: `16.8 MB`.
[[nodiscard]] std::string bytes_text(Bytes bytes);
/// A limit with as few digits as six significant ones allow: `1 s`, `1000 TB/s`, `0 s`.
[[nodiscard]] std::string limit_text(Duration duration);
[[nodiscard]] std::string limit_text(Bytes bytes);
[[nodiscard]] std::string limit_text(Bandwidth bandwidth);
[[nodiscard]] std::string limit_text(FlopRate rate);
/// The number with three significant digits and k, M, G or T: "547k", "1.02M".
[[nodiscard]] std::string short_number(double number);

}  // namespace hdpsim
