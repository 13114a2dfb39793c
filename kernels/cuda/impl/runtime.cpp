#include "kernels/cuda/impl/runtime.h"

#include <fmt/format.h>

#include <string>

#include "kernels/spec/error.h"

namespace hdpsim::kernels::cuda {
namespace {

std::string advice_for(cudaError_t status) {
  switch (status) {
    case cudaErrorNoDevice:
      return "there is no NVIDIA GPU, or CUDA_VISIBLE_DEVICES hides it";
    case cudaErrorInsufficientDriver: {
      int runtime = 0;
      cudaRuntimeGetVersion(&runtime);
      return fmt::format(
          "no NVIDIA driver, or one that is older than CUDA {}.{}, which this program was built with: see "
          "nvidia-smi, and install a newer driver",
          runtime / 1000, runtime % 1000 / 10);
    }
    case cudaErrorMemoryAllocation:
      return "too little memory: use smaller shapes, or end what else uses the device (nvidia-smi shows it)";
    case cudaErrorNoKernelImageForDevice:
      return "this program has no code for this device: build it with its architecture in HDPSIM_CUDA_ARCHITECTURES";
    case cudaErrorDevicesUnavailable:
      return "another program has the device for itself (nvidia-smi shows it)";
    default:
      return "";
  }
}

double gib(std::size_t bytes) {
  return static_cast<double>(bytes) / (1 << 30);
}

}  // namespace

void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // an error that can be survived does not return with the next call
  const std::string advice = advice_for(status);
  throw DeviceError(fmt::format("{}: {} ({}){}{}", call, cudaGetErrorString(status), cudaGetErrorName(status),
                                advice.empty() ? "" : ": ", advice));
}

void use_device(int device) {
  check(cudaSetDevice(device), "cudaSetDevice");
}

StreamHandle make_stream(bool high_priority) {
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, high_priority ? greatest : least),
        "cudaStreamCreateWithPriority");
  return StreamHandle(stream);
}

EventHandle make_event(bool timing) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
  return EventHandle(event);
}

PinnedMemory allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable),
        fmt::format("cudaHostAlloc of {:.2f} GiB of pinned host memory", gib(bytes)));
  return PinnedMemory(memory);
}

RawDeviceMemory allocate_device(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status != cudaSuccess) {
    std::size_t free = 0;
    std::size_t total = 0;
    cudaMemGetInfo(&free, &total);
    check(status, fmt::format("cudaMalloc of {:.2f} GiB, where {:.2f} of {:.2f} GiB are free", gib(bytes), gib(free),
                              gib(total)));
  }
  return RawDeviceMemory(memory);
}

}  // namespace hdpsim::kernels::cuda
