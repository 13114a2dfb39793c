#include "sim/app/signals.h"

#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <initializer_list>

#include "sim/app/exit_code.h"
#include "sim/base/atomic_file.h"

namespace hdpsim::app {
namespace {

// Batch systems send SIGKILL some seconds after SIGTERM, and a person presses Ctrl-C again after two.
constexpr timeval watchdog_patience{.tv_sec = 1, .tv_usec = 500'000};

std::atomic<int> received = 0;
std::atomic<bool> asks = false;
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler may touch nothing else");

// The following code runs in a signal handler: it uses only system calls and memory of its own.

[[noreturn]] void end_now(int signal) {
  remove_unfinished_files();
  _exit(exit_by_signal + signal);
}

void handle(int signal) {
  if (signal == SIGALRM) end_now(received);
  if (!asks || received != 0) end_now(signal);
  received = signal;
  const itimerval watchdog{.it_interval = {}, .it_value = watchdog_patience};
  setitimer(ITIMER_REAL, &watchdog, nullptr);
}

void install(int signal) {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void end_on_signals() {
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction inherited {};
    sigaction(signal, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) install(signal);
  }
}

void catch_stop_signals() {
  asks = true;
  for (const int signal : {SIGALRM, SIGINT, SIGTERM}) install(signal);
}

int stop_signal() {
  return received;
}

}  // namespace hdpsim::app
