#include "kernels/cuda/nccl_transport.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/impl/communicator_transport.h"
#include "kernels/cuda/impl/nccl_communicator.h"
#include "kernels/cuda/impl/runtime.h"
#include "kernels/cuda/impl/stream_queues.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

/// A CommunicatorTransport with the streams that it works with.
class NcclTransport final : public Transport {
 public:
  NcclTransport(Backend& backend, const cuda::nccl::UniqueId& id, int rank, int size, const NcclOptions& options)
      : queues_(launch_of(backend)),
        transport_(join(backend, id, rank, size, options), backend, queues_, options.limit) {}

  [[nodiscard]] int rank() const override { return transport_.rank(); }
  [[nodiscard]] int size() const override { return transport_.size(); }
  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override {
    return transport_.start(sends, receives);
  }
  void wait(Ticket ticket) override { transport_.wait(ticket); }
  void progress() override { transport_.progress(); }
  void all_reduce(float* data, std::size_t count) override { transport_.all_reduce(data, count); }
  void all_gather(const void* mine, void* all, std::size_t bytes_per_rank) override {
    transport_.all_gather(mine, all, bytes_per_rank);
  }
  void reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) override {
    transport_.reduce_scatter(all, mine, count_per_rank);
  }
  void all_to_all(const void* from, void* to, std::size_t bytes_per_rank) override {
    transport_.all_to_all(from, to, bytes_per_rank);
  }
  void barrier() override { transport_.barrier(); }

 private:
  std::unique_ptr<cuda::Communicator> join(Backend& backend, const cuda::nccl::UniqueId& id, int rank, int size,
                                           const NcclOptions& options) {
    return std::make_unique<cuda::NcclCommunicator>(
        id, rank, size,
        cuda::NcclCommunicator::Settings{.device = launch_of(backend).device(),
                                         .stream = queues_.stream(cuda::Queue::out),
                                         .limit = options.limit,
                                         .most_thread_blocks = options.most_thread_blocks});
  }

  cuda::StreamQueues queues_;
  cuda::CommunicatorTransport transport_;
};

}  // namespace

std::unique_ptr<Transport> make_nccl_transport(Backend& backend, int rank, int size, const Broadcast& broadcast,
                                               const NcclOptions& options) {
  if (rank < 0 || rank >= size) throw UnsupportedInput(fmt::format("NCCL: rank {} of {}", rank, size));
  cuda::use_device(launch_of(backend).device());
  const auto& api = cuda::nccl::Api::instance();
  cuda::nccl::UniqueId id{};
  if (rank == 0) {
    const auto result = api.unique_id(&id);
    if (result != cuda::nccl::Result::success) {
      throw DeviceError(fmt::format("ncclGetUniqueId: {}", api.error_string(result)));
    }
  }
  broadcast(std::as_writable_bytes(std::span(id.bytes)));
  return std::make_unique<NcclTransport>(backend, id, rank, size, options);
}

std::unique_ptr<Transport> make_nccl_transport(Backend& backend, Transport& bootstrap, const NcclOptions& options) {
  const auto broadcast = [&](std::span<std::byte> bytes) {
    std::vector<std::byte> all(bytes.size() * static_cast<std::size_t>(bootstrap.size()));
    bootstrap.all_gather(bytes.data(), all.data(), bytes.size());
    std::memcpy(bytes.data(), all.data(), bytes.size());
  };
  return make_nccl_transport(backend, bootstrap.rank(), bootstrap.size(), broadcast, options);
}

}  // namespace hdpsim::kernels
