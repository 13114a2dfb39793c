#include "kernels/cuda/peak.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "kernels/cuda/impl/runtime.h"

namespace hdpsim::kernels {
namespace {

double device_attribute(cudaDeviceAttr what, int device) {
  int value = 0;
  cuda::check(cudaDeviceGetAttribute(&value, what, device), "cudaDeviceGetAttribute");
  return value;
}

/// NVLink of 3rd, 4th and 5th generation, half of what the data sheets of A100 (600 GB/s), H100 and H200 (900 GB/s) and
/// B200 (1.8 TB/s) give for both directions.
double peer_bandwidth(int compute_capability) {
  switch (compute_capability) {
    case 80:
      return 300e9;
    case 90:
      return 450e9;
    case 100:
      return 900e9;
    default:
      return 0;
  }
}

}  // namespace

double matrix_flops_per_clock(int compute_capability) {
  switch (compute_capability) {
    case 80:
      return 2048;
    case 90:
      return 4096;
    case 100:
    case 103:
      return 8192;
    default:
      return 1024;
  }
}

DevicePeak cuda_device_peak(int device) {
  const double multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount, device);
  const double clock_hz = device_attribute(cudaDevAttrClockRate, device) * 1e3;
  const double memory_clock_hz = device_attribute(cudaDevAttrMemoryClockRate, device) * 1e3;
  const double memory_bits = device_attribute(cudaDevAttrGlobalMemoryBusWidth, device);
  const int capability = static_cast<int>(10 * device_attribute(cudaDevAttrComputeCapabilityMajor, device) +
                                          device_attribute(cudaDevAttrComputeCapabilityMinor, device));
  const double flops_per_clock = matrix_flops_per_clock(capability);
  return {
      .flops = multiprocessors * flops_per_clock * clock_hz,
      .memory_bandwidth = 2 * memory_clock_hz * memory_bits / 8,  // double data rate
      .peer_bandwidth = peer_bandwidth(capability),
      .source = fmt::format("as the driver says: {:.0f} multiprocessors x {:.0f} flop x {:.0f} MHz; 2 x {:.0f} MHz x "
                            "{:.0f} bit",
                            multiprocessors, flops_per_clock, clock_hz * 1e-6, memory_clock_hz * 1e-6, memory_bits)};
}

}  // namespace hdpsim::kernels
