#pragma once

#include <compare>
#include <cstdint>
#include <stdexcept>

namespace hdpsim {

__extension__ typedef __int128 Int128;  // holds exact products of two 64-bit quantities

/// A time, an amount or a rate that does not fit 64 bits. Quantities that are each within their limits may together
/// make one, so it is not a broken invariant: the caller that knows the input reports it as a problem of that input (as
/// simulate_step() does).
class QuantityOverflow : public std::overflow_error {
 public:
  using std::overflow_error::overflow_error;
};

namespace detail {
[[noreturn]] void time_overflows();
[[noreturn]] void amount_overflows();
[[noreturn]] void rate_overflows();

/// a + b, a - b and a * b; `overflows` throws where 64 bits do not hold the result.
template <void (*overflows)()>
constexpr std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) [[unlikely]]
    overflows();
  return result;
}
template <void (*overflows)()>
constexpr std::int64_t difference(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_sub_overflow(a, b, &result)) [[unlikely]]
    overflows();
  return result;
}
template <void (*overflows)()>
constexpr std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) [[unlikely]]
    overflows();
  return result;
}
}  // namespace detail

/// A length of time in integer picoseconds, up to +-106 days. Arithmetic never wraps: it throws a QuantityOverflow
/// beyond that.
class Duration {
 public:
  constexpr Duration() = default;
  [[nodiscard]] static constexpr Duration picoseconds(std::int64_t count) { return Duration(count); }
  /// The duration rounded to the nearest picosecond, for the border of a cost formula. NaN is a bug (checked).
  [[nodiscard]] static Duration seconds(double seconds);
  [[nodiscard]] static constexpr Duration max() { return Duration(INT64_MAX); }

  [[nodiscard]] constexpr std::int64_t picoseconds() const { return ps_; }
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(ps_) * 1e-12; }

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) {
    return Duration(detail::sum<detail::time_overflows>(a.ps_, b.ps_));
  }
  friend constexpr Duration operator-(Duration a, Duration b) {
    return Duration(detail::difference<detail::time_overflows>(a.ps_, b.ps_));
  }
  friend constexpr Duration operator*(Duration a, std::int64_t n) {
    return Duration(detail::product<detail::time_overflows>(a.ps_, n));
  }
  friend constexpr Duration operator*(std::int64_t n, Duration a) { return a * n; }
  constexpr Duration& operator+=(Duration b) { return *this = *this + b; }
  constexpr Duration& operator-=(Duration b) { return *this = *this - b; }
  /// The product rounded to the nearest picosecond.
  [[nodiscard]] Duration scaled(double factor) const;

 private:
  constexpr explicit Duration(std::int64_t ps) : ps_(ps) {}
  std::int64_t ps_ = 0;
};

/// A point of simulated time. Two instants cannot be added; their difference is a duration.
class Instant {
 public:
  constexpr Instant() = default;
  [[nodiscard]] static constexpr Instant at(Duration since_start) { return Instant(since_start); }
  [[nodiscard]] constexpr Duration since_start() const { return since_start_; }

  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant t, Duration d) { return Instant(t.since_start_ + d); }
  friend constexpr Duration operator-(Instant a, Instant b) { return a.since_start_ - b.since_start_; }
  constexpr Instant& operator+=(Duration d) { return *this = *this + d; }

 private:
  constexpr explicit Instant(Duration d) : since_start_(d) {}
  Duration since_start_;
};

/// An amount of data: up to 9.2 EB, checked as Duration is.
class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_(count) {}
  [[nodiscard]] constexpr std::int64_t count() const { return count_; }
  /// 1 GB = 1e9 bytes.
  [[nodiscard]] constexpr double gigabytes() const { return static_cast<double>(count_) / 1e9; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) {
    return Bytes(detail::sum<detail::amount_overflows>(a.count_, b.count_));
  }
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    return Bytes(detail::difference<detail::amount_overflows>(a.count_, b.count_));
  }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) {
    return Bytes(detail::product<detail::amount_overflows>(a.count_, n));
  }
  friend constexpr Bytes operator*(std::int64_t n, Bytes a) { return a * n; }
  friend constexpr Bytes operator/(Bytes a, std::int64_t n) { return Bytes(a.count_ / n); }
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
  /// The product rounded to the nearest byte.
  [[nodiscard]] Bytes scaled(double factor) const;

 private:
  std::int64_t count_ = 0;
};

/// A data rate in integer bytes per second; 1 GB/s = 1e9 B/s, as nccl-tests means it. Checked as Duration is.
class Bandwidth {
 public:
  constexpr Bandwidth() = default;
  [[nodiscard]] static constexpr Bandwidth bytes_per_second(std::int64_t rate) { return Bandwidth(rate); }
  [[nodiscard]] constexpr std::int64_t bytes_per_second() const { return rate_; }
  [[nodiscard]] constexpr double gigabytes_per_second() const { return static_cast<double>(rate_) / 1e9; }

  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;
  friend constexpr Bandwidth operator+(Bandwidth a, Bandwidth b) {
    return Bandwidth(detail::sum<detail::rate_overflows>(a.rate_, b.rate_));
  }
  friend constexpr Bandwidth operator*(Bandwidth a, std::int64_t n) {
    return Bandwidth(detail::product<detail::rate_overflows>(a.rate_, n));
  }
  friend constexpr Bandwidth operator/(Bandwidth a, std::int64_t n) { return Bandwidth(a.rate_ / n); }
  /// The product rounded to the nearest byte per second.
  [[nodiscard]] Bandwidth scaled(double factor) const;

 private:
  constexpr explicit Bandwidth(std::int64_t rate) : rate_(rate) {}
  std::int64_t rate_ = 0;
};

/// Transfer time, rounded up to the next picosecond, exact through 128 bits. Requires a positive bandwidth (checked).
/// QuantityOverflow if it is longer than Duration can hold.
[[nodiscard]] Duration operator/(Bytes bytes, Bandwidth bandwidth);

/// Work in floating-point operations (a multiply-add counts as two). It is a double because totals exceed 2^63.
class Flops {
 public:
  constexpr Flops() = default;
  constexpr explicit Flops(double count) : count_(count) {}
  [[nodiscard]] constexpr double count() const { return count_; }
  friend constexpr auto operator<=>(Flops, Flops) = default;
  friend constexpr Flops operator+(Flops a, Flops b) { return Flops(a.count_ + b.count_); }
  friend constexpr Flops operator*(Flops a, double n) { return Flops(a.count_ * n); }
  friend constexpr Flops operator*(double n, Flops a) { return a * n; }
  constexpr Flops& operator+=(Flops b) { return *this = *this + b; }

 private:
  double count_ = 0;
};

/// Arithmetic speed in floating-point operations per second.
class FlopRate {
 public:
  constexpr FlopRate() = default;
  constexpr explicit FlopRate(double per_second) : per_second_(per_second) {}
  [[nodiscard]] constexpr double per_second() const { return per_second_; }
  friend constexpr auto operator<=>(FlopRate, FlopRate) = default;

 private:
  double per_second_ = 0;
};

/// Time for the work, rounded to the nearest picosecond. Requires a positive rate (checked).
[[nodiscard]] Duration operator/(Flops work, FlopRate rate);

inline namespace literals {
constexpr Duration operator""_ps(unsigned long long n) {
  return Duration::picoseconds(static_cast<std::int64_t>(n));
}
constexpr Duration operator""_ns(unsigned long long n) {
  return 1000_ps * static_cast<std::int64_t>(n);
}
constexpr Duration operator""_us(unsigned long long n) {
  return 1000_ns * static_cast<std::int64_t>(n);
}
constexpr Duration operator""_ms(unsigned long long n) {
  return 1000_us * static_cast<std::int64_t>(n);
}
constexpr Duration operator""_s(unsigned long long n) {
  return 1000_ms * static_cast<std::int64_t>(n);
}
constexpr Bytes operator""_B(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n));
}
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 10);
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 20);
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 30);
}
constexpr Bandwidth operator""_GBps(unsigned long long n) {
  return Bandwidth::bytes_per_second(static_cast<std::int64_t>(n) * 1'000'000'000);
}
constexpr Bandwidth operator""_Gbps(unsigned long long n) {
  return Bandwidth::bytes_per_second(static_cast<std::int64_t>(n) * 125'000'000);
}
constexpr FlopRate operator""_TFLOPs(unsigned long long n) {
  return FlopRate(static_cast<double>(n) * 1e12);
}
}  // namespace literals

}  // namespace hdpsim
