#include "kernels/cuda/cuda_backend.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/cuda/impl/gated_timer.h"
#include "kernels/cuda/impl/management.h"
#include "kernels/cuda/impl/matrix_product.h"
#include "kernels/cuda/impl/runtime.h"
#include "kernels/cuda/impl/staging.h"
#include "kernels/cuda/impl/stream_queues.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/layer_launches.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

using cuda::check;

constexpr int least_capability = 80;  // bf16 in tensor cores, cp.async
#ifdef HDPSIM_WITH_HOPPER
constexpr bool with_hopper = true;
#else
constexpr bool with_hopper = false;
#endif

void require(bool condition, const char* message) {
  if (!condition) throw UnsupportedInput(message);
}

void require_attention(const AttentionHeads& heads, std::span<const AttentionBlock> blocks, std::int64_t q_stride,
                       std::int64_t k_stride, std::int64_t lse_stride) {
  require_valid(heads, blocks);
  require(q_stride >= heads.heads * heads.dim, "attention: a row of queries does not fit in its stride");
  require(k_stride >= heads.kv_heads * heads.dim, "attention: a row of keys does not fit in its stride");
  // Other widths are refused by the kernels' own arguments.
  require(std::ranges::all_of(
              blocks, [&](const AttentionBlock& block) { return block.query_begin + block.queries <= lse_stride; }),
          "attention: a block ends beyond the rows of LSE");
}

/// Windows are for the portable kernels alone.
[[maybe_unused]] bool has_window(std::span<const AttentionBlock> blocks) {
  return std::ranges::any_of(blocks, [](const AttentionBlock& block) { return block.window > 0; });
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int attribute(cudaDeviceAttr what, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, what, device), "cudaDeviceGetAttribute");
  return value;
}

/// Compute capability of a device, which must exist and be supported; makes it the calling thread's device.
int capability_of(int device) {
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  if (device < 0 || device >= devices) {
    throw DeviceError(fmt::format("there is no GPU {}: this machine has {}, counted from 0", device, devices));
  }
  const int capability =
      10 * attribute(cudaDevAttrComputeCapabilityMajor, device) + attribute(cudaDevAttrComputeCapabilityMinor, device);
  if (capability < least_capability) {
    throw DeviceError(fmt::format("GPU {} has compute capability {}.{}; the kernels need 8.0 (A100) or later", device,
                                  capability / 10, capability % 10));
  }
  cuda::use_device(device);
  return capability;
}

class CudaBackend final : public Backend, public cuda::Launch {
 public:
  CudaBackend(int device, AttentionPath path)
      : device_(device),
        capability_(capability_of(device)),
        hopper_(with_hopper && capability_ == 90 && path == AttentionPath::best),
        multiprocessors_(attribute(cudaDevAttrMultiProcessorCount, device)),
        management_(device) {}
  ~CudaBackend() override {
    timer_.open();
    cudaSetDevice(device_);
    cudaStreamSynchronize(stream_.get());
  }

  [[nodiscard]] Element element() const override { return Element::bf16; }
  [[nodiscard]] DeviceInfo info() const override;
  [[nodiscard]] DeviceState state() override { return management_.state(highest_clock_mhz()); }

  [[nodiscard]] DeviceMemory allocate(std::size_t bytes) override;
  void fill_bytes(void* data, int value, std::size_t bytes) override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void upload_queued(void* device, const void* host, std::size_t bytes) override {
    if (bytes > 0) copy(device, stage(host, bytes), bytes);
  }
  void synchronize() override;
  [[nodiscard]] bool runs_ahead() const override { return true; }
  [[nodiscard]] Mark mark() override {
    cuda::use_device(device_);
    return clock_.mark(stream_.get());
  }
  [[nodiscard]] std::chrono::steady_clock::time_point time_of(const Mark& mark) override {
    return cuda::DeviceClock::time_of(mark);
  }

  void run(const AttentionForward& op) override;
  void run(const AttentionDelta& op) override { run_layer(op); }
  void run(const AttentionBackward& op) override;
  void run(const RmsNormForward& op) override { run_layer(op); }
  void run(const RmsNormBackward& op) override { run_layer(op); }
  void run(const Rope& op) override { run_layer(op); }
  void run(const SwigluForward& op) override { run_layer(op); }
  void run(const SwigluBackward& op) override { run_layer(op); }
  void run(const Add& op) override { run_layer(op); }
  void run(const EmbeddingForward& op) override { run_layer(op); }
  void run(const EmbeddingBackward& op) override { run_layer(op); }
  void run(const CrossEntropy& op) override { run_layer(op); }
  void run(const LogSumExp& op) override { run_layer(op); }
  void run(const JoinLogSumExp& op) override { run_layer(op); }
  void run(const Adam& op) override { run_layer(op); }
  void run(const Cast& op) override { run_layer(op); }
  void run(const MatrixProduct& op) override {
    cuda::use_device(device_);
    matrix_products_.run(*this, op);
  }

  void set_progress_hook(std::function<void()>) override {}
  void set_sm_margin(int multiprocessors) override { margin_ = std::clamp(multiprocessors, 0, multiprocessors_ - 1); }

  [[nodiscard]] std::vector<double> time(int runs, bool cold, const std::function<void()>& work) override;

  [[nodiscard]] int device() const override { return device_; }
  [[nodiscard]] cudaStream_t stream() const override { return stream_.get(); }
  [[nodiscard]] int multiprocessors() const override { return multiprocessors_ - margin_; }
  [[nodiscard]] int compute_capability() const override { return capability_; }
  [[nodiscard]] const cuda::DeviceClock& clock() const override { return clock_; }
  [[nodiscard]] const void* stage(const void* host, std::size_t bytes) override { return staging_.stage(host, bytes); }
  [[nodiscard]] void* scratch(std::size_t bytes) override { return staging_.scratch(bytes); }

 private:
  template <class Operation>
  void run_layer(const Operation& op) {
    cuda::use_device(device_);
    cuda::layer::run(*this, op);
  }
  [[nodiscard]] double highest_clock_mhz() const { return attribute(cudaDevAttrClockRate, device_) * 1e-3; }
  [[nodiscard]] std::size_t cache_bytes() const {
    return static_cast<std::size_t>(attribute(cudaDevAttrL2CacheSize, device_));
  }
  void queue_eviction();

  int device_;
  int capability_;
  bool hopper_;
  int multiprocessors_;
  int margin_ = 0;
  cuda::Management management_;
  cuda::StreamHandle stream_ = cuda::make_stream();
  cuda::DeviceClock clock_{stream_.get()};
  cuda::GatedTimer timer_{stream_.get()};
  cuda::Staging staging_{stream_.get(), [this] { timer_.open(); }};
  cuda::MatrixProducts matrix_products_;
  cuda::RawDeviceMemory eviction_;  ///< Larger than the last-level cache, once a cold time was asked for.
};

DeviceInfo CudaBackend::info() const {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
  int driver = 0;
  int runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const std::string driver_version = management_.driver_version();
  return {.name = properties.name,
          .multiprocessors = multiprocessors_,
          .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem),
          .cache_bytes = static_cast<std::int64_t>(cache_bytes()),
          .clock_mhz = highest_clock_mhz(),
          .driver = driver_version.empty() ? "CUDA " + version_text(driver) : driver_version,
          .cuda = version_text(runtime),
          .instruction_set = hopper_ ? "sm_90a" : fmt::format("sm_{}", capability_)};
}

DeviceMemory CudaBackend::allocate(std::size_t bytes) {
  cuda::use_device(device_);
  timer_.open();
  cuda::RawDeviceMemory memory = cuda::allocate_device(std::max<std::size_t>(bytes, 1));
  return {memory.release(), cuda::FreeDevice()};
}

void CudaBackend::fill_bytes(void* data, int value, std::size_t bytes) {
  cuda::use_device(device_);
  check(cudaMemsetAsync(data, value, bytes, stream_.get()), "cudaMemsetAsync");
}

void CudaBackend::upload(void* device, const void* host, std::size_t bytes) {
  cuda::use_device(device_);
  timer_.open();
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_.get()), "cudaMemcpyAsync to the device");
  synchronize();
}

void CudaBackend::download(void* host, const void* device, std::size_t bytes) {
  cuda::use_device(device_);
  timer_.open();
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_.get()), "cudaMemcpyAsync to the host");
  synchronize();
}

void CudaBackend::copy(void* to, const void* from, std::size_t bytes) {
  cuda::use_device(device_);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_.get()), "cudaMemcpyAsync on the device");
}

void CudaBackend::synchronize() {
  cuda::use_device(device_);
  timer_.open();
  check(cudaStreamSynchronize(stream_.get()), "cudaStreamSynchronize, after all that was queued before");
  clock_.keep_right();
}

void CudaBackend::run(const AttentionForward& op) {
  require_attention(op.heads, op.blocks, std::min(op.q.stride, op.o.stride), std::min(op.k.stride, op.v.stride),
                    op.lse_stride);
  cuda::use_device(device_);
#ifdef HDPSIM_WITH_HOPPER
  if (hopper_ && !has_window(op.blocks)) return cuda::hopper::run(op, *this);
#endif
  cuda::portable::run(op, *this);
}

void CudaBackend::run(const AttentionBackward& op) {
  require_attention(op.heads, op.blocks, std::min({op.q.stride, op.d_o.stride, op.d_q.stride}),
                    std::min({op.k.stride, op.v.stride, op.d_k.stride, op.d_v.stride}), op.lse_stride);
  cuda::use_device(device_);
#ifdef HDPSIM_WITH_HOPPER
  if (hopper_ && !has_window(op.blocks)) return cuda::hopper::run(op, *this);
#endif
  cuda::portable::run(op, *this);
}

void CudaBackend::queue_eviction() {
  check(cudaMemsetAsync(eviction_.get(), 0, 2 * cache_bytes(), stream_.get()), "cudaMemsetAsync");
}

std::vector<double> CudaBackend::time(int runs, bool cold, const std::function<void()>& work) {
  cuda::use_device(device_);
  if (!cold)
    return timer_.time(
        runs, [] {}, work);
  if (!eviction_) eviction_ = cuda::allocate_device(2 * cache_bytes());
  return timer_.time(
      runs, [this] { queue_eviction(); }, work);
}

}  // namespace

int cuda_device_count() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess) return devices;
  cudaGetLastError();
  return 0;
}

std::unique_ptr<Backend> make_cuda_backend(int device, AttentionPath path) {
  return std::make_unique<CudaBackend>(device, path);
}

cuda::Launch& launch_of(Backend& backend) {
  auto* const launch = dynamic_cast<cuda::Launch*>(&backend);
  if (launch == nullptr) throw UnsupportedInput("this needs a CUDA backend");
  return *launch;
}

}  // namespace hdpsim::kernels
