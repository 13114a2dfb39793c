#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/spec/backend.h"
#include "tests/support/gpu/guarded.h"

namespace hdpsim::kernels {

/// A packed tensor [rows, width] of bf16 or fp32 in device memory, with room behind each row and zones before and
/// behind all of it: NaN wherever nothing was put.
template <class T>
class DeviceTensor {
 public:
  DeviceTensor(Backend& backend, std::int64_t rows, std::int64_t width, std::int64_t room = 0)
      : backend_(backend),
        rows_(rows),
        width_(width),
        stride_(width + room),
        host_(static_cast<std::size_t>(rows * stride_ + 2 * zone)),
        memory_(backend.allocate(host_.size() * sizeof(T))) {
    std::ranges::fill(host_, poison());
    upload();
  }
  /// Of dense values [rows, width].
  DeviceTensor(Backend& backend, std::span<const double> dense, std::int64_t width, std::int64_t room = 0)
      : DeviceTensor(backend, static_cast<std::int64_t>(dense.size()) / width, width, room) {
    for (std::int64_t i = 0; i < rows_ * width_; ++i) {
      emulator::Guarded<T>::store(at(i / width_, i % width_), dense[static_cast<std::size_t>(i)]);
    }
    upload();
  }

  [[nodiscard]] T* data() { return static_cast<T*>(memory_.get()) + zone; }
  [[nodiscard]] const T* data() const { return static_cast<const T*>(memory_.get()) + zone; }
  [[nodiscard]] std::int64_t stride() const { return stride_; }

  /// What the device holds now, without the room.
  [[nodiscard]] std::vector<double> dense() {
    download();
    std::vector<double> values;
    for (std::int64_t i = 0; i < rows_ * width_; ++i) {
      values.push_back(emulator::Guarded<T>::load(at(i / width_, i % width_)));
    }
    return values;
  }
  /// All of it as bytes, zones and room, too: equal where two runs gave the same bits.
  [[nodiscard]] std::vector<std::byte> bytes() {
    download();
    const auto* const begin = reinterpret_cast<const std::byte*>(host_.data());
    return {begin, begin + host_.size() * sizeof(T)};
  }
  /// Was nothing written around and between the rows, nor in rows that `used` does not name?
  template <class Used>
  [[nodiscard]] bool rest_is_untouched(const Used& used) {
    download();
    const auto is_poison = [](T value) { return std::isnan(emulator::Guarded<T>::load(value)); };
    if (!std::all_of(host_.begin(), host_.begin() + zone, is_poison)) return false;
    if (!std::all_of(host_.end() - zone, host_.end(), is_poison)) return false;
    for (std::int64_t i = 0; i < rows_; ++i) {
      for (std::int64_t j = used(i) ? width_ : 0; j < stride_; ++j) {
        if (!is_poison(at(i, j))) return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool rest_is_untouched() {
    return rest_is_untouched([](std::int64_t) { return true; });
  }

 private:
  static constexpr std::int64_t zone = 512;  // keeps 256-byte alignment
  static T poison() {
    T value{};
    emulator::Guarded<T>::store(value, NAN);
    return value;
  }
  [[nodiscard]] T& at(std::int64_t i, std::int64_t j) {
    return host_[static_cast<std::size_t>(zone + i * stride_ + j)];
  }
  void upload() { backend_.upload(memory_.get(), host_.data(), host_.size() * sizeof(T)); }
  void download() { backend_.download(host_.data(), memory_.get(), host_.size() * sizeof(T)); }

  Backend& backend_;
  std::int64_t rows_;
  std::int64_t width_;
  std::int64_t stride_;
  std::vector<T> host_;
  DeviceMemory memory_;
};

}  // namespace hdpsim::kernels
