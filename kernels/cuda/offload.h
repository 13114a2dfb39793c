#pragma once

#include <cstddef>
#include <memory>

#include "kernels/spec/backend.h"
#include "kernels/spec/host_copies.h"

namespace hdpsim::kernels {

/// Pinned host memory for the activations of one GPU, allocated once (which is slow), and the streams that copy to and
/// from it, one per direction.
class HostActivations {
 public:
  /// `backend` is one of make_cuda_backend() and must outlive this. slab_bytes is the size of one copy. Copies of one
  /// direction run one after another, so a short one waits for at most a slab: 16 MiB take 0.3 ms at 55 GB/s.
  /// DeviceError if the host does not have the memory.
  HostActivations(Backend& backend, std::size_t host_bytes, std::size_t slab_bytes = std::size_t{16} << 20);
  HostActivations(const HostActivations&) = delete;
  HostActivations& operator=(const HostActivations&) = delete;
  ~HostActivations();

  [[nodiscard]] std::size_t free_bytes() const;

 private:
  friend class ActivationOffload;
  struct State;
  std::unique_ptr<State> state_;
};

/// Copies on streams of their own, one per direction, from and to pinned memory, which is allocated on request.
/// `backend` is one of make_cuda_backend() and must outlive this.
[[nodiscard]] std::unique_ptr<HostCopies> make_host_copies(Backend& backend);

/// Keeps the activations of a stack of layers on the host between forward and backward, first in, last out:
///
///     offload.begin(layers, bytes);
///     for each layer:        void* memory = offload.begin_forward();
///                            queue kernels that fill it
///                            offload.end_forward();
///     for each layer, down:  void* memory = offload.begin_backward();
///                            queue kernels that read it
///                            offload.end_backward();
///
/// The device holds prefetch_depth + 1 layers: one that is computed and others that are copied away or fetched
/// meanwhile. The last prefetch_depth + 1 layers of a pass never leave it. A layer's copy starts when its forward is
/// done; a layer is fetched as soon as the layer prefetch_depth + 1 above it no longer uses its memory. Events order
/// kernels and copies: no call waits for the device, and copies cost time only if they take longer than the layers that
/// they overlap with.
///
/// To offload a share of the activations, keep the rest elsewhere. Several of these, one per micro-batch under way, may
/// use one HostActivations, on the thread of the backend.
class ActivationOffload {
 public:
  /// Allocates (prefetch_depth + 1) x layer_bytes of device memory.
  ActivationOffload(HostActivations& host, std::size_t layer_bytes, int prefetch_depth = 2);
  ActivationOffload(const ActivationOffload&) = delete;
  ActivationOffload& operator=(const ActivationOffload&) = delete;
  /// Waits for the copies.
  ~ActivationOffload();

  /// Begins a pass over `layers` layers of at most layer_bytes each. DeviceError if they exceed the host memory that is
  /// left, UnsupportedInput for sizes that do not fit. An unfinished pass is dropped.
  void begin(int layers, std::size_t bytes_per_layer);
  [[nodiscard]] void* begin_forward();
  void end_forward();
  [[nodiscard]] void* begin_backward();
  void end_backward();

  /// Layers of this pass that go to the host.
  [[nodiscard]] int offloaded_layers() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hdpsim::kernels
