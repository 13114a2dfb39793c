#pragma once

#include <memory>
#include <string>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels::cuda {

/// What NVIDIA's management library (NVML, a part of the driver) tells of one device. Where it cannot be opened or does
/// not know the device, nothing is known and nothing fails: calibration works without it.
class Management {
 public:
  /// `device` as the CUDA runtime counts.
  explicit Management(int device);
  Management(const Management&) = delete;
  Management& operator=(const Management&) = delete;
  ~Management();

  /// As in "580.65.06"; empty if unknown.
  [[nodiscard]] std::string driver_version() const;
  /// throttled: slowed down for heat or by the board's power supply. A device that works at its power limit is
  /// throttled only when it is slower than three quarters of `highest_clock_mhz`: on matrix products that limit is
  /// where it always works.
  [[nodiscard]] DeviceState state(double highest_clock_mhz) const;

 private:
  struct Functions;
  std::unique_ptr<const Functions> functions_;  ///< Null where there is no NVML.
  void* handle_ = nullptr;                      ///< Of the device, in NVML.
};

}  // namespace hdpsim::kernels::cuda
