#include "tests/fuzz/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <new>
#include <typeinfo>

#include "sim/base/check.h"
#include "tests/fuzz/scratch_files.h"
#include "tests/support/processor_pace.h"

namespace hdpsim::fuzz {
namespace {

constexpr rlim_t most_memory = rlim_t{1} << 30;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double slower = 10;
#else
constexpr double slower = 1;
#endif
constexpr unsigned longest_wall_s = 1200;  // of a process that does not even compute

/// Processor time of the process, threads included.
void limit_time(double seconds) {
  const double whole = std::floor(seconds);
  const itimerval timer{{}, {static_cast<time_t>(whole), static_cast<suseconds_t>(1e6 * (seconds - whole))}};
  setitimer(ITIMER_PROF, &timer, nullptr);
  alarm(seconds > 0 ? longest_wall_s : 0);
}

void limit_process() {
  for (const int signal : {SIGPROF, SIGALRM, SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL})
    (void)std::signal(signal, SIG_DFL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which reserves more than it uses
  const rlimit memory{most_memory, most_memory};
  setrlimit(RLIMIT_AS, &memory);
#endif
  const int nowhere = open("/dev/null", O_WRONLY);  // notes of commands
  dup2(nowhere, STDERR_FILENO);
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string name_of_end(int status, const Target& target) {
  if (!WIFSIGNALED(status)) return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (signal == SIGPROF)
    return fmt::format("time: more than {} times the work that the machine is measured by", slower * target.longest);
  if (signal == SIGALRM) return fmt::format("time: no end after {} s", longest_wall_s);
  return fmt::format("signal: {}", strsignal(signal));
}

}  // namespace

struct Worker::Shared {
  Counts counts;
  std::uint64_t next;
  bool ended;  ///< On its own.
  std::array<char, 2000> find;
  std::array<char, 2000> reason;

  static void keep(std::array<char, 2000>& place, const std::string& text) {
    const std::size_t length = std::min(text.size(), place.size() - 1);
    std::memcpy(place.data(), text.data(), length);
    place[length] = '\0';
  }
};

Worker::Worker()
    : shared_(static_cast<Shared*>(
          mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
  if (shared_ == MAP_FAILED) throw std::bad_alloc();
}

Worker::~Worker() {
  munmap(shared_, sizeof(Shared));
}

void Worker::start(const WorkerBatch& batch) {
  batch_ = batch;
  *shared_ = {};
  shared_->next = batch.begin;
  process_ = fork();
  if (process_ == 0) work();
  if (process_ < 0) throw MachineError("cannot start a process");
}

void Worker::work() const {
  limit_process();
  std::filesystem::current_path(scratch());
  const double longest_s = slower * batch_.target->longest * std::max(test::pace_s(), test::pace_s());
  const double begin_s = processor_seconds();
  try {
    while (shared_->next < batch_.end) {
      const std::string input = batch_.changer->input(batch_.seed, shared_->next++);
      limit_time(longest_s);
      std::string reason;
      const Outcome outcome = execute(*batch_.target, input, &reason);
      limit_time(0);
      shared_->keep(shared_->reason, reason);
      Counts& counts = shared_->counts;
      ++(outcome == Outcome::refused    ? counts.refused
         : outcome == Outcome::accepted ? counts.accepted
                                        : counts.skipped);
      counts.processor_s = processor_seconds() - begin_s;
    }
  } catch (const std::bad_alloc&) {
    shared_->keep(shared_->find, fmt::format("memory: more than {} MiB", most_memory >> 20));
  } catch (const std::exception& error) {
    shared_->keep(shared_->find, error.what());
  }
  std::error_code ignored;
  std::filesystem::remove_all(scratch(), ignored);
  shared_->ended = true;
  while (true) raise(SIGKILL);  // what the parent owns is not for this process to destroy
}

Report Worker::report(int status) const {
  Report report{shared_->counts, shared_->next, shared_->reason.data()};
  if (shared_->find[0] != '\0') {
    report.find = shared_->find.data();
  } else if (!shared_->ended) {
    report.find = name_of_end(status, *batch_.target);
  }
  return report;
}

}  // namespace hdpsim::fuzz
