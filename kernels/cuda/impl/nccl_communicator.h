#pragma once

#include <chrono>

#include "kernels/cuda/impl/communicator_transport.h"
#include "kernels/cuda/impl/nccl_api.h"

namespace hdpsim::kernels::cuda {

/// One rank of a non-blocking NCCL communicator. Background work of NCCL (meeting peers, setting up connections) is
/// waited for here, for at most `limit` per call.
class NcclCommunicator final : public Communicator {
 public:
  struct Settings {
    int device = 0;
    cudaStream_t stream = nullptr;
    std::chrono::milliseconds limit{};
    int most_thread_blocks = 0;  ///< Per operation; 0 leaves it to NCCL.
  };

  /// All ranks together. DeviceError where NCCL is missing or the ranks do not all come within the limit.
  NcclCommunicator(const nccl::UniqueId& id, int rank, int size, const Settings& settings);
  ~NcclCommunicator() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  void exchange(std::span<const Send> sends, std::span<const Receive> receives) override;
  void all_reduce(float* data, std::size_t count) override;
  void all_gather(const void* mine, void* all, std::size_t bytes_per_rank) override;
  void reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) override;
  [[nodiscard]] std::optional<std::string> failure() override;
  void abort() override;

 private:
  void queue_messages(std::span<const Send> sends, std::span<const Receive> receives) const;
  /// Throws unless the call has begun successfully.
  void begun(nccl::Result result, const char* call) const;
  /// Waits until the work that the call has begun is done.
  void finish(nccl::Result result, const char* call) const;
  [[nodiscard]] std::string error_text(nccl::Result result, const char* call) const;

  const nccl::Api& api_;
  int rank_;
  int size_;
  Settings settings_;
  nccl::CommHandle comm_ = nullptr;
};

}  // namespace hdpsim::kernels::cuda
