#pragma once

#include <cstddef>
#include <memory>

#include "kernels/cuda/impl/local_world.h"
#include "kernels/cuda/impl/queues.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/backend_sums.h"
#include "kernels/transport/message_transport.h"

namespace hdpsim::kernels::cuda {

/// One rank of a LocalWorld. Collectives are its messages, summed by the backend's Add in the order of ranks.
class LocalTransport : public MessageTransport {
 public:
  /// `backend` computes on the queue that `queues` calls `compute`.
  LocalTransport(std::shared_ptr<LocalWorld> world, int rank, Backend& backend, Queues& queues);
  ~LocalTransport() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_->size(); }
  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override {
    return world_->start(rank_, sends, receives);
  }
  void wait(Ticket ticket) override { world_->wait(rank_, ticket); }
  void progress() override {}

 protected:
  [[nodiscard]] float* reserve_parts(std::size_t count) override { return sums_.reserve_parts(count); }
  void copy(void* to, const void* from, std::size_t bytes) override { sums_.copy(to, from, bytes); }
  void add(float* sum, const float* part, std::size_t count) override { sums_.add(sum, part, count); }

 private:
  std::shared_ptr<LocalWorld> world_;
  int rank_;
  Backend& backend_;
  Queues& queues_;
  BackendSums sums_;
};

}  // namespace hdpsim::kernels::cuda
