#include "sim/app/signals.h"

#include <atomic>
#include <csignal>
#include <initializer_list>

namespace hdpsim::app {
namespace {

std::atomic<int> received = 0;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may touch nothing else");

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { received = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
}

int stop_signal() {
  return received;
}

}  // namespace hdpsim::app
