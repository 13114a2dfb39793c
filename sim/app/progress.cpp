#include "sim/app/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>

#include "sim/report/values.h"

namespace hdpsim::app {
namespace {

constexpr std::size_t bar_width = 30;
constexpr auto shortest_pause = std::chrono::milliseconds(100);

std::string run_name(const RunInfo& info) {
  std::string name = info.plan;
  for (const auto& [path, value] : info.coordinates) name += fmt::format(", {} {}", path, line_of(value));
  return name;
}

}  // namespace

ProgressDisplay::ProgressDisplay() : on_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressDisplay::~ProgressDisplay() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void ProgressDisplay::show(const Progress& progress) {
  if (on_terminal_) {
    draw(progress);
  } else if (progress.finished != nullptr) {
    fmt::print(stderr, "{}/{} {}\n", progress.runs_done, progress.runs, run_name(*progress.finished));
  }
}

void ProgressDisplay::draw(const Progress& progress) {
  const auto now = Clock::now();
  if (drawn_ && now - last_ < shortest_pause) return;
  last_ = now;
  drawn_ = true;
  const std::size_t filled = progress.steps == 0 ? bar_width : bar_width * progress.steps_done / progress.steps;
  fmt::print(stderr, "\r[{:<{}}] {}/{} steps, {}/{} runs\033[K", std::string(filled, '#'), bar_width,
             progress.steps_done, progress.steps, progress.runs_done, progress.runs);
  std::fflush(stderr);
}

}  // namespace hdpsim::app
