#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/bf16.h"
#include "kernels/spec/backend.h"
#include "tests/support/catch.h"
#include "tests/support/reference_backend.h"

/// A launch on a device beside the same launch in plain fp64, of which every tensor must come out alike.
namespace hdpsim::kernels {

/// A device on which the laws of kernels are checked, and what its kernels take.
struct TestedDevice {
  std::string name;
  std::shared_ptr<Backend> backend;
  /// Rows of the laws of layers: tokens, width, and elements by which tensors lie behind an aligned address.
  struct Shape {
    std::int64_t tokens, width, shift = 0;
  };
  std::vector<Shape> shapes;
  bool has_windows = true;
  bool has_sinks = true;          ///< And heads of 192 and 256.
  bool has_products = true;       ///< Matrix products of its own.
  bool has_deterministic = true;  ///< Backward of attention in a fixed order; else it is another device's.
  std::int64_t longest = 1000;    ///< Rows of a document of attention.
  int repeats = 2;                ///< Runs that must give the same bits.

  [[nodiscard]] bool is_fp32() const { return backend->element() == Element::fp32; }
};

/// The devices of this test program.
[[nodiscard]] std::vector<TestedDevice> tested_devices();

/// How far a tensor of a device may be off: `of_largest` of the largest expected value, or of `at_least` if that is
/// larger; elements in bf16 besides by half a unit in their last place.
struct Tolerance {
  double of_largest = 0;
  double at_least = 0;
};

enum class Side { device, reference };

/// A tensor in device memory, and in fp32 beside it for the reference: [rows, width] with room behind each row and
/// zones before and behind all of it, NaN wherever nothing was put. Whoever reads a NaN spoils the result, and whoever
/// writes where the reference does not is found out.
class TwinTensor {
 public:
  struct Layout {
    std::int64_t rows = 1;
    std::int64_t width = 1;
    std::int64_t room = 0;
    std::int64_t shift = 0;  ///< Elements by which the first lies behind an address of whole 256 bytes.
    bool fp32 = false;       ///< Whatever the device's element is.
  };

  TwinTensor(Backend& device, const Layout& layout, const Tolerance& tolerance = {})
      : device_(device),
        layout_(layout),
        tolerance_(tolerance),
        is_fp32_(layout.fp32 || device.element() == Element::fp32),
        values_(static_cast<std::size_t>(2 * zone + layout.shift + layout.rows * stride()),
                std::numeric_limits<float>::quiet_NaN()),
        memory_(device.allocate(bytes())) {
    upload();
  }

  [[nodiscard]] std::int64_t stride() const { return layout_.width + layout_.room; }
  [[nodiscard]] std::int64_t rows() const { return layout_.rows; }
  [[nodiscard]] std::int64_t width() const { return layout_.width; }

  /// Random numbers of a normal distribution, which the device's element holds exactly, in rows [begin, begin + count).
  void draw(std::mt19937_64& random, double deviation, std::int64_t begin, std::int64_t count) {
    const auto uniform = [&random] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
    set(begin, count, [&](std::int64_t, std::int64_t) {
      return deviation * std::sqrt(-2 * std::log(uniform())) * std::cos(2 * 3.14159265358979323846 * uniform());
    });
  }
  void draw(std::mt19937_64& random, double deviation = 1) { draw(random, deviation, 0, layout_.rows); }
  void fill(double value, std::int64_t begin, std::int64_t count) {
    set(begin, count, [value](std::int64_t, std::int64_t) { return value; });
  }
  /// Sets elements to value(row, column).
  void set(std::int64_t begin, std::int64_t count, const std::function<double(std::int64_t, std::int64_t)>& value) {
    for (std::int64_t row = begin; row < begin + count; ++row) {
      for (std::int64_t column = 0; column < layout_.width; ++column) {
        at(row, column) = rounded(value(row, column));
      }
    }
    upload();
  }

  /// What a launch gets of it on one side: null of an empty tensor.
  struct Place {
    void* data;
    std::int64_t stride;
    template <class T>
    operator T*() const {  // NOLINT(google-explicit-constructor): as the members of operations are
      return static_cast<T*>(data);
    }
    template <class T>
    operator Rows<T>() const {  // NOLINT(google-explicit-constructor)
      return {static_cast<T*>(data), stride};
    }
  };
  [[nodiscard]] Place operator[](Side side) {
    if (layout_.rows * layout_.width == 0) return {nullptr, stride()};
    const auto first = static_cast<std::size_t>(zone + layout_.shift);
    if (side == Side::reference) return {values_.data() + first, stride()};
    return {static_cast<std::byte*>(memory_.get()) + first * element_size(), stride()};
  }

  /// What the device holds of rows [begin, begin + count), without the room.
  [[nodiscard]] std::vector<float> on_device(std::int64_t begin, std::int64_t count) {
    download();
    std::vector<float> dense;
    for (std::int64_t row = begin; row < begin + count; ++row) {
      for (std::int64_t column = 0; column < layout_.width; ++column) dense.push_back(at(row, column));
    }
    return dense;
  }

  /// How the device's tensor differs from the reference's, or nothing. The next launch of both begins with the
  /// device's.
  [[nodiscard]] std::string fault() {
    const std::vector<float> expected = values_;
    download();
    double largest = tolerance_.at_least;
    for (const float value : expected) {
      if (std::isfinite(value)) largest = std::max(largest, std::abs(double{value}));
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double right = expected[i];
      const double found = values_[i];
      if (std::isnan(right) ? std::isnan(found) : found == right) continue;
      const double allowed = tolerance_.of_largest * largest + (is_fp32_ ? 0 : std::abs(right) / 256);
      if (std::isfinite(right) && std::abs(found - right) <= allowed) continue;
      const std::int64_t place = static_cast<std::int64_t>(i) - zone - layout_.shift;
      return fmt::format("row {}, column {} is {}, not {} ({} allowed)", place / stride(), place % stride(), found,
                         right, allowed);
    }
    return "";
  }

 private:
  static constexpr std::int64_t zone = 512;

  [[nodiscard]] std::size_t element_size() const { return is_fp32_ ? 4 : 2; }
  [[nodiscard]] std::size_t bytes() const { return values_.size() * element_size(); }
  [[nodiscard]] float rounded(double value) const {
    const auto single = static_cast<float>(value);
    return is_fp32_ ? single : cuda::to_float(cuda::to_bf16(single));
  }
  [[nodiscard]] float& at(std::int64_t row, std::int64_t column) {
    return values_[static_cast<std::size_t>(zone + layout_.shift + row * stride() + column)];
  }
  void upload() {
    if (is_fp32_) return device_.upload(memory_.get(), values_.data(), bytes());
    std::vector<cuda::bf16> narrow;
    for (const float value : values_) narrow.push_back(cuda::to_bf16(value));
    device_.upload(memory_.get(), narrow.data(), bytes());
  }
  void download() {
    if (is_fp32_) return device_.download(values_.data(), memory_.get(), bytes());
    std::vector<cuda::bf16> narrow(values_.size());
    device_.download(narrow.data(), memory_.get(), bytes());
    std::transform(narrow.begin(), narrow.end(), values_.begin(), [](cuda::bf16 value) { return to_float(value); });
  }

  Backend& device_;
  Layout layout_;
  Tolerance tolerance_;
  bool is_fp32_;
  std::vector<float> values_;
  DeviceMemory memory_;
};

/// Whole numbers that launches only read: ids, positions, targets.
class TwinIds {
 public:
  TwinIds(Backend& device, std::vector<std::int32_t> ids) : ids_(std::move(ids)), memory_(device.allocate(bytes())) {
    device.upload(memory_.get(), ids_.data(), bytes());
  }
  [[nodiscard]] const std::int32_t* operator[](Side side) const {
    return side == Side::reference ? ids_.data() : static_cast<const std::int32_t*>(memory_.get());
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return ids_.size() * sizeof(std::int32_t); }
  std::vector<std::int32_t> ids_;
  DeviceMemory memory_;
};

/// Runs make(side) on the device and on the reference and compares the tensors, the read ones, too.
template <class Make>
void run_twins(Backend& device, const Make& make, std::initializer_list<TwinTensor*> tensors) {
  ReferenceBackend reference;
  device.run(make(Side::device));
  device.synchronize();
  reference.run(make(Side::reference));
  std::size_t number = 0;
  for (TwinTensor* const tensor : tensors) {
    INFO("tensor " << number++);
    const std::string fault = tensor->fault();
    REQUIRE(fault == "");
  }
}

}  // namespace hdpsim::kernels
