#include "kernels/cuda/impl/management.h"

#include <cuda_runtime_api.h>

#include <array>

#include "kernels/spec/error.h"
#include "kernels/spec/shared_library.h"

namespace hdpsim::kernels::cuda {
namespace {

// The little of nvml.h that is needed here, as the NVML API reference gives it: not every CUDA installation has the
// header.
using NvmlResult = int;  // 0 is success
using Handle = void*;
constexpr unsigned int clock_of_multiprocessors = 1;
constexpr unsigned int sensor_of_gpu = 0;
// Bits of nvmlDeviceGetCurrentClocksEventReasons.
constexpr unsigned long long power_limit = 0x4;
constexpr unsigned long long hardware_slowdown = 0x8;
constexpr unsigned long long software_thermal_slowdown = 0x20;
constexpr unsigned long long hardware_thermal_slowdown = 0x40;
constexpr unsigned long long power_brake = 0x80;

}  // namespace

struct Management::Functions {
  SharedLibrary library{"the state of a GPU needs NVML", {"libnvidia-ml.so.1"}};
  NvmlResult (*initialise)() = library.function<NvmlResult (*)()>("nvmlInit_v2");
  NvmlResult (*shut_down)() = library.function<NvmlResult (*)()>("nvmlShutdown");
  NvmlResult (*driver_version)(char*, unsigned int) =
      library.function<NvmlResult (*)(char*, unsigned int)>("nvmlSystemGetDriverVersion");
  NvmlResult (*find)(const char*, Handle*) =
      library.function<NvmlResult (*)(const char*, Handle*)>("nvmlDeviceGetHandleByPciBusId_v2");
  NvmlResult (*clock_mhz)(Handle, unsigned int, unsigned int*) =
      library.function<NvmlResult (*)(Handle, unsigned int, unsigned int*)>("nvmlDeviceGetClockInfo");
  NvmlResult (*power_mw)(Handle, unsigned int*) =
      library.function<NvmlResult (*)(Handle, unsigned int*)>("nvmlDeviceGetPowerUsage");
  NvmlResult (*temperature_c)(Handle, unsigned int, unsigned int*) =
      library.function<NvmlResult (*)(Handle, unsigned int, unsigned int*)>("nvmlDeviceGetTemperature");
  // Renamed in driver 535.
  NvmlResult (*slowdown_reasons)(Handle, unsigned long long*) =
      library.function<NvmlResult (*)(Handle, unsigned long long*)>(
          library.has("nvmlDeviceGetCurrentClocksEventReasons") ? "nvmlDeviceGetCurrentClocksEventReasons"
                                                                : "nvmlDeviceGetCurrentClocksThrottleReasons");
};

Management::Management(int device) {
  std::array<char, 32> bus_id{};
  try {
    auto functions = std::make_unique<Functions>();
    if (functions->initialise() != 0) return;
    functions_ = std::move(functions);
  } catch (const DeviceError&) {
    return;  // no NVML
  }
  if (cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device) == cudaSuccess &&
      functions_->find(bus_id.data(), &handle_) != 0) {
    handle_ = nullptr;
  }
}

Management::~Management() {
  if (functions_) functions_->shut_down();
}

std::string Management::driver_version() const {
  std::array<char, 96> text{};
  if (!functions_ || functions_->driver_version(text.data(), text.size() - 1) != 0) return "";
  return text.data();
}

DeviceState Management::state(double highest_clock_mhz) const {
  DeviceState state;
  if (handle_ == nullptr) return state;
  unsigned int value = 0;
  if (functions_->clock_mhz(handle_, clock_of_multiprocessors, &value) == 0) state.clock_mhz = value;
  if (functions_->power_mw(handle_, &value) == 0) state.power_w = value * 1e-3;
  if (functions_->temperature_c(handle_, sensor_of_gpu, &value) == 0) state.temperature_c = value;
  unsigned long long reasons = 0;
  if (functions_->slowdown_reasons(handle_, &reasons) != 0) return state;
  const bool slow = state.clock_mhz && *state.clock_mhz < 0.75 * highest_clock_mhz;
  state.throttled =
      (reasons & (hardware_slowdown | software_thermal_slowdown | hardware_thermal_slowdown | power_brake)) != 0 ||
      ((reasons & power_limit) != 0 && slow);
  return state;
}

}  // namespace hdpsim::kernels::cuda
