#include "sim/app/launch_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

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

std::string overdue_text(const Launch& launch, Together what, milliseconds limit) {
  std::string text =
      fmt::format("error: process {} has waited {:g} s for the {} processes to {} together",
                  launch.own ? std::to_string(*launch.own) : "?", std::chrono::duration<double>(limit).count(),
                  launch.processes, what == Together::start ? "start" : "end");
  if (what == Together::end) text += "; what process 0 has written is whole";
  for (const ProcessState& process : processes_of_launch(launch)) {
    text += fmt::format("\n  process {}: {}", process.rank, process.words);
  }
  if (!launch.advice.empty()) text += "\n" + launch.advice;
  return text + "\n";
}

}  // namespace

LaunchWatch::LaunchWatch(const Launch& launch, Together what, Duration patience)
    : thread_([this, launch, what, limit = limit_of(what, patience)] {
        std::unique_lock lock(mutex_);
        if (over_.wait_for(lock, launch.own.value_or(0) == 0 ? limit : limit + precedence, [this] { return is_over_; }))
          return;
        complain(overdue_text(launch, what, limit));
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
