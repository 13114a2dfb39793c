#pragma once

#include <atomic>
#include <cstdint>

namespace hdpsim {

/// What one thread does alone, again and again, while others wait for it, however long it takes.
class TakenAlone {
 public:
  /// On the thread that does it. The others go on, too, if it throws.
  template <class Action>
  void run(Action action) {
    const End end{times_};
    action();
  }
  /// On the others: returns when it has been done for the `time`-th time, counted from 0.
  void await(std::int64_t time) const {
    for (std::int64_t done = times_; done <= time; done = times_) times_.wait(done);
  }

 private:
  struct End {
    std::atomic<std::int64_t>& times;
    ~End() {
      ++times;
      times.notify_all();
    }
  };
  std::atomic<std::int64_t> times_ = 0;
};

}  // namespace hdpsim
