#pragma once

#include <string>

namespace hdpsim::kernels {

/// Limits that no kernel on a device can exceed, from its driver's data. Rates per second.
struct DevicePeak {
  double flops = 0;             ///< Dense bf16 matrix products with fp32 accumulation, at the highest clock.
  double memory_bandwidth = 0;  ///< Bandwidth of device memory, reads and writes together, B/s.
  double peer_bandwidth = 0;    ///< All NVLinks together, in one direction, B/s; 0 if the model is unknown.
  std::string source;           ///< Derivation of these figures, for the provenance of a profile.
};

/// DeviceError if there is no such device.
[[nodiscard]] DevicePeak cuda_device_peak(int device = 0);

/// Floating-point operations of dense bf16 matrix products per clock of one multiprocessor, by compute capability (90).
/// From the tables "Throughput of Native Arithmetic Instructions" and the white papers of the architectures: 2048 on
/// 8.0 (A100 white paper, 312 TFLOP/s at 1410 MHz and 108 multiprocessors), 4096 on 9.0 (H100 white paper, 989 TFLOP/s
/// at 1830 MHz and 132), 8192 on 10.0 (Blackwell technical brief, 2.25 PFLOP/s dense per B200), 1024 on others.
[[nodiscard]] double matrix_flops_per_clock(int compute_capability);

}  // namespace hdpsim::kernels
