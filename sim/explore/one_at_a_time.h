#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace hdpsim {

/// Work of which only one piece is done at a time. Those who wait leave when nobody wants their work any more: of many
/// questions that a moving slider asks while a long step is simulated, the last one alone is answered.
class OneAtATime {
 public:
  /// A turn, which ends with the object. Waits for it; false if it was given up.
  class Turn {
   public:
    Turn(OneAtATime& work, const std::function<bool()>& give_up) : work_(work), has_(work.begin(give_up)) {}
    ~Turn() {
      if (has_) work_.end();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return has_; }

   private:
    OneAtATime& work_;
    const bool has_;
  };

 private:
  bool begin(const std::function<bool()>& give_up) {
    std::unique_lock lock(mutex_);
    while (taken_ && !give_up()) changed_.wait_for(lock, std::chrono::milliseconds(10));
    if (taken_ || give_up()) return false;
    return taken_ = true;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    taken_ = false;
    changed_.notify_all();
  }

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool taken_ = false;
};

}  // namespace hdpsim
