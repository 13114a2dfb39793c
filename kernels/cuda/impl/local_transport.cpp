#include "kernels/cuda/impl/local_transport.h"

#include <exception>
#include <utility>

namespace hdpsim::kernels::cuda {

LocalTransport::LocalTransport(std::shared_ptr<LocalWorld> world, int rank, Backend& backend, Queues& queues)
    : world_(std::move(world)), rank_(rank), backend_(backend), queues_(queues), sums_(backend) {}

LocalTransport::~LocalTransport() {
  const std::vector<Event> copies = world_->leave(rank_);
  try {
    for (const Event& copy : copies) queues_.wait(Queue::compute, copy);
    backend_.synchronize();
  } catch (const std::exception&) {  // From a device that refuses, which another call has reported.
  }
}

}  // namespace hdpsim::kernels::cuda
