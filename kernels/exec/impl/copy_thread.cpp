#include "kernels/exec/impl/copy_thread.h"

#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "sim/base/check.h"

namespace hdpsim::kernels::exec {

CopyThread::~CopyThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

DeviceMemory CopyThread::allocate(std::size_t bytes) {
  return {::operator new(bytes), [](void* memory) { ::operator delete(memory); }};
}

CopyThread::Ticket CopyThread::start(std::vector<Copy> batch, Way /*way*/) {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(batch));
  changed_.notify_all();
  return started_++;
}

CopyThread::Interval CopyThread::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  HDPSIM_CHECK(ticket == waited_for_ && ticket < started_, "a wait for copy {} of {}, of which {} have been waited for",
               ticket, started_, waited_for_);
  changed_.wait(lock, [&] { return !done_.empty(); });
  Interval interval = done_.front();
  done_.pop_front();
  ++waited_for_;
  return interval;
}

void CopyThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    const std::vector<Copy> batch = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Interval interval{{std::chrono::steady_clock::now(), nullptr}, {}};
    for (const Copy& copy : batch) {
      if (copy.bytes > 0) std::memcpy(copy.to, copy.from, copy.bytes);
    }
    interval.end.time = std::chrono::steady_clock::now();
    lock.lock();
    done_.push_back(interval);
    changed_.notify_all();
  }
}

}  // namespace hdpsim::kernels::exec
