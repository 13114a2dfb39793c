#include "kernels/cuda/impl/queues.h"

#include <fmt/format.h>

#include <utility>

#include "kernels/spec/error.h"

namespace hdpsim::kernels::cuda {

HostCopies::Ticket QueueCopies::start(std::vector<Copy> batch, Way way) {
  const Queue queue = way == Way::to_host ? Queue::out : Queue::in;
  queues_.wait(queue, queues_.record(Queue::compute));
  Mark begin = queues_.mark(queue);
  for (const Copy& copy : batch) {
    if (copy.bytes > 0) queues_.copy(queue, copy.to, copy.from, copy.bytes);
  }
  Mark end = queues_.mark(queue);
  under_way_.push_back({{std::move(begin), std::move(end)}, queues_.record(queue)});
  return waited_for_ + under_way_.size() - 1;
}

HostCopies::Interval QueueCopies::wait(Ticket ticket) {
  if (ticket != waited_for_ || under_way_.empty()) {
    throw UnsupportedInput(fmt::format("a wait for copy {}, but {} comes next", ticket, waited_for_));
  }
  Batch batch = std::move(under_way_.front());
  under_way_.pop_front();
  ++waited_for_;
  queues_.wait(Queue::compute, batch.done);
  return std::move(batch.when);
}

}  // namespace hdpsim::kernels::cuda
