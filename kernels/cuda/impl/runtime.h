#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>

namespace hdpsim::kernels::cuda {

/// DeviceError unless `status` is success: it names the call, CUDA's answer and a remedy.
void check(cudaError_t status, std::string_view call);

/// Selects the device for the calling thread's CUDA calls. Cheap if it is selected already.
void use_device(int device);

struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
struct FreePinned {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};
struct FreeDevice {
  void operator()(void* memory) const { cudaFree(memory); }
};
using StreamHandle = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
using EventHandle = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, DestroyEvent>;
using PinnedMemory = std::unique_ptr<void, FreePinned>;
using RawDeviceMemory = std::unique_ptr<void, FreeDevice>;

/// A stream of the current device that does not wait for the default stream. high_priority: its kernels start first.
[[nodiscard]] StreamHandle make_stream(bool high_priority = false);
/// An event of the current device. Only timing ones have a time, and they cost more.
[[nodiscard]] EventHandle make_event(bool timing = false);
/// Page-locked host memory that every device can access under its own address. Slow to allocate. DeviceError that says
/// how much was asked for.
[[nodiscard]] PinnedMemory allocate_pinned(std::size_t bytes);
/// Memory of the current device. DeviceError that says how much was asked for and how much is free.
[[nodiscard]] RawDeviceMemory allocate_device(std::size_t bytes);

}  // namespace hdpsim::kernels::cuda
