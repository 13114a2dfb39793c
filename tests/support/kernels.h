#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/spec/attention.h"

/// What tests of kernels share: random tensors, errors that a NaN cannot pass, and tensors with guard zones.
namespace hdpsim::test {

/// `count` numbers of a normal distribution, the same on every machine.
inline std::vector<float> random_tensor(std::uint64_t seed, std::size_t count, double deviation = 1) {
  std::mt19937_64 engine(seed);
  const auto uniform = [&engine] { return (static_cast<double>(engine() >> 11) + 0.5) * 0x1p-53; };
  std::vector<float> values(count);
  for (float& value : values) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    value = static_cast<float>(deviation * radius * std::cos(2 * 3.14159265358979323846 * uniform()));
  }
  return values;
}

/// A random integer in [least, most].
inline std::int64_t random_between(std::mt19937_64& engine, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(most - least + 1));
}

inline std::vector<double> to_double(std::span<const float> values) {
  return {values.begin(), values.end()};
}
inline std::vector<float> to_float(std::span<const double> values) {
  std::vector<float> rounded;
  for (const double value : values) rounded.push_back(static_cast<float>(value));
  return rounded;
}

/// Largest |got - expected| as a share of the largest |expected| (of `at_least` if that is larger: what cancels in the
/// expected values has errors all the same); 0 where all are equal (infinities, too), NaN where
/// anything is not a number or the sizes differ. Compare so that NaN fails: `CHECK(error <= bound)`.
template <class Got, class Expected>
double relative_error(const Got& got, const Expected& expected, double at_least = 0) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (std::size(got) != std::size(expected)) return nan;
  double largest = at_least;
  double error = 0;
  for (std::size_t i = 0; i < std::size(got); ++i) {
    const auto a = static_cast<double>(got[i]);
    const auto b = static_cast<double>(expected[i]);
    if (a == b && std::isinf(a)) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) return nan;
    largest = std::max(largest, std::abs(b));
    error = std::max(error, std::abs(a - b));
  }
  return error == 0 ? 0 : error / largest;
}

/// Root of the mean squared error as a share of the root of the mean square of `expected`.
template <class Got, class Expected>
double relative_rms_error(const Got& got, const Expected& expected) {
  if (std::size(got) != std::size(expected)) return std::numeric_limits<double>::quiet_NaN();
  double squares = 0;
  double error = 0;
  for (std::size_t i = 0; i < std::size(got); ++i) {
    const double difference = static_cast<double>(got[i]) - static_cast<double>(expected[i]);
    error += difference * difference;
    squares += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return error == 0 ? 0 : std::sqrt(error / squares);
}

/// Rows [rows, width] at a stride that leaves room between them, and zones before and behind, all of it the same
/// NaN: whoever reads it spoils the result, whoever writes it is found out.
class GuardedRows {
 public:
  GuardedRows(std::int64_t rows, std::int64_t width, std::int64_t room = 24)
      : rows_(rows),
        width_(width),
        stride_(width + room),
        values_(static_cast<std::size_t>((rows + 2 * zone) * stride_), poison()) {}

  [[nodiscard]] float* data() { return values_.data() + zone * stride_; }
  [[nodiscard]] const float* data() const { return values_.data() + zone * stride_; }
  [[nodiscard]] std::int64_t stride() const { return stride_; }

  [[nodiscard]] std::span<float> row(std::int64_t i) {
    return {data() + i * stride_, static_cast<std::size_t>(width_)};
  }
  [[nodiscard]] std::span<const float> row(std::int64_t i) const {
    return {data() + i * stride_, static_cast<std::size_t>(width_)};
  }
  /// `dense`: [rows, width], of which rows [begin, begin + count) are taken.
  void set_rows(std::int64_t begin, std::int64_t count, std::span<const float> dense) {
    for (std::int64_t i = begin; i < begin + count; ++i) {
      std::copy_n(dense.begin() + i * width_, width_, row(i).begin());
    }
  }
  void fill_rows(std::int64_t begin, std::int64_t count, float value) {
    for (std::int64_t i = begin; i < begin + count; ++i) std::fill_n(row(i).begin(), width_, value);
  }
  [[nodiscard]] std::vector<float> dense(std::int64_t begin, std::int64_t count) const {
    std::vector<float> result;
    for (std::int64_t i = begin; i < begin + count; ++i) result.insert(result.end(), row(i).begin(), row(i).end());
    return result;
  }

  /// Is everything poison still, except rows for which `used` says otherwise?
  template <class Used>
  [[nodiscard]] bool untouched_except(const Used& used) const {
    for (std::int64_t i = -zone; i < rows_ + zone; ++i) {
      const bool inside = i >= 0 && i < rows_ && used(i);
      for (std::int64_t j = inside ? width_ : 0; j < stride_; ++j) {
        if (!std::isnan(data()[i * stride_ + j])) return false;
      }
    }
    return true;
  }

 private:
  static constexpr std::int64_t zone = 3;
  static float poison() { return std::numeric_limits<float>::quiet_NaN(); }

  std::int64_t rows_;
  std::int64_t width_;
  std::int64_t stride_;
  std::vector<float> values_;
};

}  // namespace hdpsim::test
