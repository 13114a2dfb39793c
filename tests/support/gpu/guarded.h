#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/cuda/bf16.h"

namespace hdpsim::emulator {

/// A tensor of T (bf16 or fp32) full of NaN, with a guard zone on either side that no kernel may touch.
template <class T>
class Guarded {
 public:
  /// `shift` is the number of elements by which the first lies behind an address of whole 16 bytes.
  explicit Guarded(std::size_t count, std::size_t shift = 0)
      : memory_(count + 2 * guard + shift), count_(count), shift_(shift) {
    std::memset(static_cast<void*>(memory_.data()), 0xFF, memory_.size() * sizeof(T));
  }
  Guarded(std::span<const double> values, std::size_t shift = 0) : Guarded(values.size(), shift) {
    for (std::size_t i = 0; i < count_; ++i) store(data()[i], values[i]);
  }

  [[nodiscard]] T* data() { return memory_.data() + guard + shift_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] double operator[](std::size_t i) const { return load(memory_[guard + shift_ + i]); }
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> all;
    for (std::size_t i = 0; i < count_; ++i) all.push_back((*this)[i]);
    return all;
  }
  [[nodiscard]] bool guards_hold() const {
    const auto untouched = [&](std::size_t begin, std::size_t end) {
      const auto* const bytes = reinterpret_cast<const unsigned char*>(memory_.data());
      for (std::size_t i = begin * sizeof(T); i < end * sizeof(T); ++i) {
        if (bytes[i] != 0xFF) return false;
      }
      return true;
    };
    return untouched(0, guard + shift_) && untouched(guard + shift_ + count_, memory_.size());
  }

  static double load(T value) {
    if constexpr (std::is_same_v<T, float>) {
      return value;
    } else {
      return kernels::cuda::to_float(value);
    }
  }
  static void store(T& to, double value) {
    if constexpr (std::is_same_v<T, float>) {
      to = static_cast<float>(value);
    } else {
      to = kernels::cuda::to_bf16(static_cast<float>(value));
    }
  }

 private:
  static constexpr std::size_t guard = 64;
  std::vector<T> memory_;
  std::size_t count_;
  std::size_t shift_;
};

/// Numbers between -scale and scale that T holds exactly.
template <class T>
std::vector<double> random_values(std::mt19937& random, std::size_t count, double scale = 1) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    T stored{};
    Guarded<T>::store(stored, scale * (static_cast<double>(random() % 20001) / 10000.0 - 1.0));
    values.push_back(Guarded<T>::load(stored));
  }
  return values;
}

/// Half a unit in the last place of T, relative; fp32 counts as exact.
template <class T>
inline constexpr double rounding_of = std::is_same_v<T, float> ? 0 : 1.0 / 256;

/// The largest error of found against expected values, as a share of what `rounding` (of each value) and `tolerance`
/// (of the largest value) allow; NaN where there is one or the sizes differ.
inline double worst(std::span<const double> found, std::span<const double> expected, double rounding,
                    double tolerance) {
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  double result = found.size() == expected.size() ? 0 : NAN;
  for (std::size_t i = 0; i < expected.size() && !std::isnan(result); ++i) {
    const double allowed = rounding * std::abs(expected[i]) + tolerance * largest + 1e-30;
    const double error = std::abs(found[i] - expected[i]) / allowed;
    if (!(error <= result)) result = error;
  }
  return result;
}
/// The same, but NaN also if a guard was written.
template <class T>
double worst(const Guarded<T>& found, std::span<const double> expected, double tolerance) {
  return found.guards_hold() ? worst(found.values(), expected, rounding_of<T>, tolerance) : NAN;
}

}  // namespace hdpsim::emulator
