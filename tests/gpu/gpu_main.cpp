// The main program of the tests that need a GPU: skips without one, and ends a test that hangs.

#define CATCH_CONFIG_EXTERNAL_INTERFACES  // listeners, of Catch2 2.x
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "kernels/cuda/cuda_backend.h"
#include "tests/support/catch.h"
#include "tests/support/catch_runner.h"

namespace hdpsim::kernels {
namespace {

constexpr int skipped = 77;  // as ctest is told
constexpr std::chrono::seconds limit_of_a_test{600};

/// Ends the program if one test case takes longer than the limit: a kernel that waits for itself never returns, and
/// CUDA calls behind it neither.
class Watchdog {
 public:
  static Watchdog& instance() {
    static Watchdog watchdog;
    return watchdog;
  }
  void begin(const std::string& test) { set(test); }
  void end() { set(""); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog() {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  Watchdog() : thread_([this] { watch(); }) {}
  void set(const std::string& test) {
    {
      const std::scoped_lock lock(mutex_);
      test_ = test;
      ++number_;
    }
    changed_.notify_all();
  }
  void watch() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      const int number = number_;
      const bool changed = changed_.wait_for(lock, limit_of_a_test, [&] { return ended_ || number_ != number; });
      if (changed || test_.empty()) continue;
      std::fprintf(stderr, "HANG: \"%s\" has not ended within %d s\n", test_.c_str(),
                   static_cast<int>(limit_of_a_test.count()));
      std::abort();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string test_;
  int number_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

#if __has_include(<catch2/catch_all.hpp>)
class WatchdogListener : public Catch::EventListenerBase {
 public:
  using Catch::EventListenerBase::EventListenerBase;
#else
class WatchdogListener : public Catch::TestEventListenerBase {
 public:
  using Catch::TestEventListenerBase::TestEventListenerBase;
#endif
  void testCaseStarting(const Catch::TestCaseInfo& test) override {
    Watchdog::instance().begin(test.name);
  }
  void testCaseEnded(const Catch::TestCaseStats&) override {
    Watchdog::instance().end();
  }
};
CATCH_REGISTER_LISTENER(WatchdogListener)

}  // namespace
}  // namespace hdpsim::kernels

int main(int argc, char** argv) {
  if (hdpsim::kernels::cuda_device_count() == 0) {
    std::fputs("NOT RUN: there is no NVIDIA GPU here\n", stderr);
    return hdpsim::kernels::skipped;
  }
  return hdpsim::test::run_tests(argc, argv);
}
