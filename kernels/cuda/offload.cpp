#include "kernels/cuda/offload.h"

#include <utility>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/impl/offload_stack.h"
#include "kernels/cuda/impl/queues.h"
#include "kernels/cuda/impl/runtime.h"
#include "kernels/cuda/impl/stream_queues.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels {

struct HostActivations::State {
  State(Backend& used, std::size_t host_bytes, std::size_t slab_bytes)
      : backend(used),
        memory(cuda::allocate_pinned(host_bytes / slab_bytes * slab_bytes)),
        slabs(memory.get(), host_bytes / slab_bytes, slab_bytes),
        queues(launch_of(used)) {}

  Backend& backend;
  cuda::PinnedMemory memory;
  cuda::SlabPool slabs;
  cuda::StreamQueues queues;  // goes first: its copies end before the memory does
};

HostActivations::HostActivations(Backend& backend, std::size_t host_bytes, std::size_t slab_bytes) {
  if (slab_bytes == 0 || host_bytes < slab_bytes) {
    throw UnsupportedInput("offload: the host memory has to hold a slab, and a slab at least a byte");
  }
  state_ = std::make_unique<State>(backend, host_bytes, slab_bytes);
}

HostActivations::~HostActivations() = default;

std::size_t HostActivations::free_bytes() const {
  return state_->slabs.free() * state_->slabs.slab_bytes();
}

namespace {

class StreamCopies final : public HostCopies {
 public:
  explicit StreamCopies(Backend& backend) : queues_(launch_of(backend)) {}

  [[nodiscard]] DeviceMemory allocate(std::size_t bytes) override { return copies_.allocate(bytes); }
  [[nodiscard]] Ticket start(std::vector<Copy> batch, Way way) override { return copies_.start(std::move(batch), way); }
  Interval wait(Ticket ticket) override { return copies_.wait(ticket); }

 private:
  static DeviceMemory pinned(std::size_t bytes) { return {cuda::allocate_pinned(bytes).release(), cuda::FreePinned()}; }

  cuda::StreamQueues queues_;
  cuda::QueueCopies copies_{queues_, pinned};
};

}  // namespace

std::unique_ptr<HostCopies> make_host_copies(Backend& backend) {
  return std::make_unique<StreamCopies>(backend);
}

struct ActivationOffload::State {
  State(HostActivations::State& used, std::size_t layer_bytes, int slots)
      : host(used),
        memory(slots_of(host.backend, layer_bytes, slots)),
        stack(host.queues, host.slabs, pointers(), layer_bytes) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { host.queues.finish(); }

  static std::vector<DeviceMemory> slots_of(Backend& backend, std::size_t layer_bytes, int slots) {
    std::vector<DeviceMemory> memory;
    memory.reserve(static_cast<std::size_t>(slots));
    for (int slot = 0; slot < slots; ++slot) memory.push_back(backend.allocate(layer_bytes));
    return memory;
  }
  [[nodiscard]] std::vector<void*> pointers() const {
    std::vector<void*> all;
    all.reserve(memory.size());
    for (const DeviceMemory& slot : memory) all.push_back(slot.get());
    return all;
  }

  HostActivations::State& host;
  std::vector<DeviceMemory> memory;
  cuda::OffloadStack stack;
};

ActivationOffload::ActivationOffload(HostActivations& host, std::size_t layer_bytes, int prefetch_depth) {
  if (prefetch_depth < 0) throw UnsupportedInput("offload: a prefetch depth below 0");
  state_ = std::make_unique<State>(*host.state_, layer_bytes, prefetch_depth + 1);
}

ActivationOffload::~ActivationOffload() = default;

void ActivationOffload::begin(int layers, std::size_t bytes_per_layer) {
  state_->stack.begin(layers, bytes_per_layer);
}
void* ActivationOffload::begin_forward() {
  return state_->stack.begin_forward();
}
void ActivationOffload::end_forward() {
  state_->stack.end_forward();
}
void* ActivationOffload::begin_backward() {
  return state_->stack.begin_backward();
}
void ActivationOffload::end_backward() {
  state_->stack.end_backward();
}
int ActivationOffload::offloaded_layers() const {
  return state_->stack.offloaded_layers();
}

}  // namespace hdpsim::kernels
