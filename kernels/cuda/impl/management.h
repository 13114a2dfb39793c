#pragma once

#include <memory>
#include <string>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels::cuda {

/// The state of one device from NVIDIA's management library (NVML, a part of the driver). If it cannot be opened or
/// does not know the device, values are unknown and nothing fails: calibration works without it.
class Management {
 public:
  /// `device` is numbered as in the CUDA runtime.
  explicit Management(int device);
  Management(const Management&) = delete;
  Management& operator=(const Management&) = delete;
  ~Management();

  /// For example "580.65.06"; empty if unknown.
  [[nodiscard]] std::string driver_version() const;
  /// throttled: slowed down for heat or by the board's power supply. A device that works at its power limit is
  /// throttled only when it is slower than three quarters of `highest_clock_mhz`: on matrix products that limit is
  /// where it always works.
  [[nodiscard]] DeviceState state(double highest_clock_mhz) const;

 private:
  struct Functions;
  std::unique_ptr<const Functions> functions_;  ///< Null where there is no NVML.
  void* handle_ = nullptr;                      ///< NVML's handle of the device.
};

}  // namespace hdpsim::kernels::cuda
