#include "sim/app/real/execution_devices.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/exec/requirements.h"
#include "kernels/spec/error.h"
#include "kernels/transport/in_process.h"
#ifdef HDPSIM_WITH_CUDA
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/local_gpu_transport.h"
#include "kernels/cuda/nccl_transport.h"
#include "kernels/cuda/offload.h"
#endif

namespace hdpsim::app {
namespace {

using Limit = std::chrono::milliseconds;

void run_cores(int devices, Limit limit, const DeviceWork& work) {
  kernels::run_ranks(
      devices,
      [&](kernels::Transport& transport) {
        const auto backend = kernels::make_cpu_backend();
        work({*backend, transport, transport});
      },
      limit);
}

void run_core(kernels::Transport& host, const DeviceWork& work) {
  const auto backend = kernels::make_cpu_backend();
  work({*backend, host, host});
}

#ifdef HDPSIM_WITH_CUDA

int gpus() {
  return kernels::cuda_device_count();
}

// Ranks communicate through the process's memory besides the GPU.
void run_virtual_ranks(int devices, Limit limit, const DeviceWork& work) {
  auto hosts = kernels::make_in_process_transports(devices, limit);
  const auto run = [&](kernels::Backend& backend, kernels::Transport& transport) {
    const auto host = std::move(hosts[static_cast<std::size_t>(transport.rank())]);  // released with the rank
    const auto copies = kernels::make_host_copies(backend);
    work({backend, transport, *host, copies.get()});
  };
  kernels::run_local_gpu_ranks(devices, run, 0, kernels::AttentionPath::best, limit);
}

// A launcher may show each process only its own GPU, which is then the first.
void run_gpu(kernels::Transport& host, const std::vector<kernels::Seat>& seats, Limit limit, const DeviceWork& work) {
  const auto self = seats.begin() + host.rank();
  const auto before = std::count_if(seats.begin(), self, [&](const auto& seat) { return seat.host == self->host; });
  const auto backend = kernels::make_cuda_backend(static_cast<int>(before) % std::max(1, gpus()));
  const auto transport = kernels::make_nccl_transport(*backend, host, {.limit = limit});
  const auto copies = kernels::make_host_copies(*backend);
  work({*backend, *transport, host, copies.get()});
}

#else

int gpus() {
  return 0;
}
[[noreturn]] void refuse() {
  throw kernels::DeviceError("this hdpsim was built without CUDA");
}
void run_virtual_ranks(int, Limit, const DeviceWork&) {
  refuse();
}
void run_gpu(kernels::Transport&, const std::vector<kernels::Seat>&, Limit, const DeviceWork&) {
  refuse();
}

#endif

}  // namespace

void require_devices(DeviceKind kind, const Work& work) {
  if (kind == DeviceKind::cpu) return;
  if (work.mesh().pp > 1) {
    throw kernels::UnsupportedInput("pipelines are executed on CPUs alone: with --backend cuda use mesh.pp 1");
  }
  if (!work.point->spec.conditions.faults.empty()) {
    throw kernels::UnsupportedInput("devices are made slow on CPUs alone: with --backend cuda use --set faults=[]");
  }
  kernels::exec::require_executable_on_gpu(work.point->spec.recipe.key_exchange);
#ifndef HDPSIM_WITH_CUDA
  refuse();
#endif
  if (gpus() == 0) throw kernels::DeviceError("there is no GPU that this program can use: see nvidia-smi");
}

kernels::Element element_of(DeviceKind kind) {
  return kind == DeviceKind::cpu ? kernels::Element::fp32 : kernels::Element::bf16;
}

void run_device_threads(DeviceKind kind, int devices, Limit limit, const DeviceWork& work) {
  kind == DeviceKind::cpu ? run_cores(devices, limit, work) : run_virtual_ranks(devices, limit, work);
}

void run_device_process(DeviceKind kind, kernels::Transport& host, const std::vector<kernels::Seat>& seats, Limit limit,
                        const DeviceWork& work) {
  kind == DeviceKind::cpu ? run_core(host, work) : run_gpu(host, seats, limit, work);
}

double device_share(DeviceKind kind, const std::vector<kernels::Seat>& seats, bool are_threads) {
  if (kind == DeviceKind::cpu) return kernels::least_core_share(seats);
  return are_threads ? 1.0 / static_cast<double>(seats.size()) : 1;
}

}  // namespace hdpsim::app
