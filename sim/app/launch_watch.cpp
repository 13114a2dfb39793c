#include "sim/app/launch_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "sim/app/exit_code.h"
#include "sim/app/terminal.h"

namespace hdpsim::app {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds least_patience = std::chrono::minutes(1);
constexpr milliseconds precedence = std::chrono::seconds(3);  // time for process 0, if it is there, to report for all

milliseconds limit_of(Together what, Duration patience) {
  const milliseconds once = std::max(milliseconds(patience.picoseconds() / 1'000'000'000), least_patience);
  return what == Together::start ? once : 2 * once;
}

// Whether process 0 has reported for all: it was here shortly before its time was up, and is gone.
bool has_left(const std::vector<ProcessState>& before, const std::vector<ProcessState>& now) {
  return !before.empty() && before.front().is_here && !now.empty() && !now.front().is_here;
}

std::string overdue_text(const Launch& launch, Together what, milliseconds limit,
                         const std::vector<ProcessState>& processes) {
  std::string text =
      fmt::format("error: process {} has waited {:g} s for the {} processes to {} together",
                  launch.own ? std::to_string(*launch.own) : "?", std::chrono::duration<double>(limit).count(),
                  launch.processes, what == Together::start ? "start" : "end");
  if (what == Together::end) text += "; what process 0 has written is whole";
  for (const ProcessState& process : processes) {
    text += fmt::format("\n  process {}: {}", process.rank, process.words);
  }
  if (!launch.advice.empty()) text += "\n" + launch.advice;
  return text + "\n";
}

}  // namespace

LaunchWatch::LaunchWatch(const Launch& launch, Together what, Duration patience)
    : thread_([this, launch, what, limit = limit_of(what, patience)] {
        std::unique_lock lock(mutex_);
        const auto is_over = [this] { return is_over_; };
        // Those who have waited as long leave one after the other: who is missing is who was so before.
        if (over_.wait_for(lock, limit - precedence, is_over)) return;
        const std::vector<ProcessState> seen = processes_of_launch(launch);
        const bool is_first = launch.own.value_or(0) == 0;
        if (over_.wait_for(lock, is_first ? precedence : 2 * precedence, is_over)) return;
        if (is_first || !has_left(seen, processes_of_launch(launch))) complain(overdue_text(launch, what, limit, seen));
        std::_Exit(machine_refused);  // the other thread is inside MPI
      }) {}

LaunchWatch::~LaunchWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_one();
  thread_.join();
}

}  // namespace hdpsim::app
