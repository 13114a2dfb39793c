#include "kernels/cuda/impl/local_transport.h"

#include <exception>
#include <utility>

namespace hdpsim::kernels::cuda {

LocalTransport::LocalTransport(std::shared_ptr<LocalWorld> world, int rank, Backend& backend, Queues& queues)
    : world_(std::move(world)), rank_(rank), backend_(backend), queues_(queues) {}

LocalTransport::~LocalTransport() {
  const std::vector<Event> copies = world_->leave(rank_);
  try {
    for (const Event& copy : copies) queues_.wait(Queue::compute, copy);
    backend_.synchronize();
  } catch (const std::exception&) {  // Of a device that refuses, which somebody else has reported.
  }
}

float* LocalTransport::reserve_parts(std::size_t count) {
  if (count > parts_count_) {
    backend_.synchronize();  // The old memory may be in use.
    parts_.reset();
    parts_ = backend_.allocate(count * sizeof(float));
    parts_count_ = count;
  }
  return static_cast<float*>(parts_.get());
}

void LocalTransport::copy(void* to, const void* from, std::size_t bytes) {
  if (to != from && bytes > 0) backend_.copy(to, from, bytes);
}

void LocalTransport::add(float* sum, const float* part, std::size_t count) {
  if (count == 0) return;
  backend_.run(Add{.count = static_cast<std::int64_t>(count), .a = sum, .b = part, .y = sum, .fp32 = true});
}

}  // namespace hdpsim::kernels::cuda
