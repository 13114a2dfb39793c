#include "kernels/cpu/duty_cycle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <stdexcept>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

constexpr std::int64_t nanoseconds_per_second = 1'000'000'000;
constexpr auto look_every = std::chrono::milliseconds(2);
constexpr double longest_stop_us = 1e6;               // in between a thread may end, as the others have
constexpr std::int64_t shortest_stop_ns = 2'000'000;  // shorter ones are added up: a signal takes microseconds

int stop_signal() {
  return SIGRTMIN + 6;
}

// A thread that is woken early, by another signal, sleeps on.
extern "C" void stop_for(int, siginfo_t* info, void*) {
  const int kept = errno;
  const int microseconds = info->si_value.sival_int;
  timespec left{microseconds / 1'000'000, microseconds % 1'000'000 * 1000L};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  errno = kept;
}

void require(int error, const char* what) {
  if (error != 0) throw DeviceError(fmt::format("a thread cannot be made slow: {}: {}", what, std::strerror(error)));
}

std::int64_t nanoseconds_of(clockid_t clock) {
  timespec now{};
  return clock_gettime(clock, &now) == 0 ? now.tv_sec * nanoseconds_per_second + now.tv_nsec : 0;
}

}  // namespace

DutyCycle::DutyCycle() : thread_(pthread_self()) {
  require(pthread_getcpuclockid(thread_, &time_on_core_), "pthread_getcpuclockid");
  struct sigaction action {};
  action.sa_sigaction = stop_for;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  require(sigaction(stop_signal(), &action, nullptr) == 0 ? 0 : errno, "sigaction");
  keeper_ = std::jthread([this] { keep(); });
}

DutyCycle::~DutyCycle() {
  const std::scoped_lock lock(mutex_);
  ends_ = true;
  changed_.notify_one();
}

void DutyCycle::set(double slowdown) {
  if (slowdown < 1) throw std::logic_error("a slowdown is at least 1");
  const std::scoped_lock lock(mutex_);
  slowdown_ = slowdown;
  changed_.notify_one();
}

void DutyCycle::keep() {
  std::unique_lock lock(mutex_);
  double owed_ns = 0;
  std::chrono::microseconds pause = look_every;
  std::int64_t seen_ns = nanoseconds_of(time_on_core_);
  while (!ends_) {
    if (slowdown_ == 1) {
      changed_.wait(lock, [&] { return ends_ || slowdown_ != 1; });
      owed_ns = 0;
      seen_ns = nanoseconds_of(time_on_core_);
      continue;
    }
    changed_.wait_for(lock, pause);
    pause = look_every;
    const std::int64_t now_ns = nanoseconds_of(time_on_core_);
    owed_ns += (slowdown_ - 1) * static_cast<double>(now_ns - seen_ns);
    seen_ns = now_ns;
    if (owed_ns < static_cast<double>(shortest_stop_ns)) continue;
    sigval stop{};
    stop.sival_int = static_cast<int>(std::min(owed_ns / 1000, longest_stop_us));
    // If the queue is full, it is sent later.
    if (pthread_sigqueue(thread_, stop_signal(), stop) != 0) continue;
    owed_ns -= 1000.0 * stop.sival_int;
    pause = std::max<std::chrono::microseconds>(look_every, std::chrono::microseconds(stop.sival_int));
  }
}

}  // namespace hdpsim::kernels
