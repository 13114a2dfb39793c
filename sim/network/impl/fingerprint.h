#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/network/impl/flow_hash.h"

namespace hdpsim {

/// A number of the field of integers modulo 2^61 - 1: sums, products and quotients are exact, so that equal expressions
/// have equal values whatever the order of their terms. Expressions of keys that differ have equal values with a
/// probability of about 2^-60 (Schwartz and Zippel).
class Fingerprint {
 public:
  Fingerprint() = default;
  [[nodiscard]] static Fingerprint of_number(Int128 number) {
    return Fingerprint(static_cast<std::uint64_t>(number % prime));
  }
  /// A number that stands for a pair of keys: reproducible, and otherwise as if drawn.
  [[nodiscard]] static Fingerprint of_key(std::uint64_t first, std::uint64_t second) {
    return of_number(static_cast<Int128>(mixed(mixed(first) ^ second)) + 1);
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }
  [[nodiscard]] bool is_zero() const { return value_ == 0; }

  Fingerprint& operator+=(Fingerprint other) {
    value_ = (value_ + other.value_) % static_cast<std::uint64_t>(prime);
    return *this;
  }
  friend Fingerprint operator*(Fingerprint a, Fingerprint b) { return of_number(Int128{a.value_} * Int128{b.value_}); }
  /// `b` must not be 0. O(log prime).
  friend Fingerprint operator/(Fingerprint a, Fingerprint b) {
    for (std::uint64_t exponent = static_cast<std::uint64_t>(prime) - 2; exponent > 0; exponent >>= 1U) {
      if ((exponent & 1U) != 0) a = a * b;  // by Fermat's little theorem
      b = b * b;
    }
    return a;
  }

 private:
  static constexpr std::int64_t prime = (std::int64_t{1} << 61U) - 1;
  explicit Fingerprint(std::uint64_t value) : value_(value) {}

  std::uint64_t value_ = 0;
};

}  // namespace hdpsim
