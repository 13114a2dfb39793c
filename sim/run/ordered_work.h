#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "sim/run/joined_threads.h"

namespace hdpsim {

/// One thread for each processor of this machine.
[[nodiscard]] inline std::size_t one_a_processor() {
  return std::max(1U, std::thread::hardware_concurrency());
}

/// Numbered work on several threads whose results are taken in the order of their numbers, one at a time, so that the
/// taker need not know how many threads there are.
struct OrderedWork {
  std::int64_t first = 0;
  std::int64_t end = 0;  ///< One past the last number.
  std::size_t jobs = 1;
  std::function<bool()> stop = [] { return false; };  ///< Asked before every piece of work, from any thread.
};

/// `make_worker()` makes the callable with which one thread turns a number into a result. `take(number, result)` gets
/// all results in ascending order. Threads run at most eight pieces each ahead of what was taken, so that memory does
/// not grow with the work. Returns false if it was stopped: the results up to some number have then been taken, without
/// a gap. The first exception of a thread is thrown on.
template <class MakeWorker, class Take>
class OrderedRun {
 public:
  using Worker = std::invoke_result_t<MakeWorker>;
  using Result = std::invoke_result_t<Worker, std::int64_t>;

  OrderedRun(const OrderedWork& work, const MakeWorker& make_worker, const Take& take)
      : work_(work), make_worker_(make_worker), take_(take), next_(work.first), taken_(work.first) {
    const std::int64_t pieces = std::max<std::int64_t>(1, work.end - work.first);
    threads_ = std::clamp<std::int64_t>(static_cast<std::int64_t>(work.jobs), 1, pieces);
  }

  bool run() {
    {
      JoinedThreads others;
      for (std::int64_t i = 1; i < threads_; ++i) others.begin([this] { work(); });
      work();
    }
    if (failure_) std::rethrow_exception(failure_);
    return taken_ == work_.end;
  }

 private:
  static constexpr std::int64_t ahead = 8;

  void work() {
    try {
      Worker worker = make_worker_();
      std::unique_lock lock(mutex_);
      while (may_begin(lock)) {
        const std::int64_t number = next_++;
        lock.unlock();
        Result result = worker(number);
        lock.lock();
        done_.emplace(number, std::move(result));
        take_done();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      ended_ = true;
    }
    changed_.notify_all();
  }

  bool may_begin(std::unique_lock<std::mutex>& lock) {
    changed_.wait(lock, [&] { return ended_ || next_ >= work_.end || next_ < taken_ + ahead * threads_; });
    if (!ended_ && next_ < work_.end && work_.stop()) ended_ = true;
    return !ended_ && next_ < work_.end;
  }

  void take_done() {
    while (!failure_ && !done_.empty() && done_.begin()->first == taken_) {
      auto [number, result] = std::move(*done_.begin());
      done_.erase(done_.begin());
      ++taken_;
      take_(number, std::move(result));
    }
    changed_.notify_all();
  }

  const OrderedWork& work_;
  const MakeWorker& make_worker_;
  const Take& take_;
  std::int64_t threads_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::int64_t next_;
  std::int64_t taken_;
  std::map<std::int64_t, Result> done_;
  bool ended_ = false;
  std::exception_ptr failure_;
};

template <class MakeWorker, class Take>
bool run_in_order(const OrderedWork& work, const MakeWorker& make_worker, const Take& take) {
  return OrderedRun(work, make_worker, take).run();
}

}  // namespace hdpsim
