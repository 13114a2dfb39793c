#include "sim/app/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "sim/app/terminal.h"
#include "sim/document/values.h"

namespace hdpsim::app {
namespace {

constexpr std::size_t bar_width = 30;
constexpr auto shortest_pause = std::chrono::milliseconds(100);

constexpr auto short_wait = std::chrono::seconds(3);

std::string run_name(const RunInfo& info) {
  std::string name = info.plan;
  for (const auto& [path, value] : info.coordinates) name += fmt::format(", {} {}", path, line_of(value));
  return name;
}

double share_of(std::size_t done, std::size_t all) {
  return all == 0 ? 1 : static_cast<double>(done) / static_cast<double>(all);
}

constexpr std::int64_t whole = 1000;
std::int64_t thousandths(double share) {
  return static_cast<std::int64_t>(static_cast<double>(whole) * std::clamp(share, 0.0, 1.0));
}

}  // namespace

ProgressDisplay::ProgressDisplay() : on_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressDisplay::~ProgressDisplay() {
  if (drawn_) clear_line();
}

void ProgressDisplay::show(const Progress& progress) {
  if (on_terminal_) {
    const auto done = static_cast<std::int64_t>(progress.steps_done);
    const std::string left = time_left(done, static_cast<std::int64_t>(progress.steps) - done);
    draw(share_of(progress.steps_done, progress.steps),
         fmt::format("{}/{} steps, {}/{} runs{}", done, progress.steps, progress.runs_done, progress.runs, left));
  } else if (progress.finished != nullptr) {
    note(fmt::format("{}/{} {}", progress.runs_done, progress.runs, run_name(*progress.finished)));
  }
}

void ProgressDisplay::show(const MeasuringProgress& progress) {
  const std::string left = fmt::format("about {:.0f} s left", std::ceil(progress.left_s));
  const auto done = static_cast<std::int64_t>(progress.done);
  const auto total = static_cast<std::int64_t>(progress.total);
  draw_or_tell(done, total,
               on_terminal_ ? fmt::format("{}/{} {}: {}", done, total, left, progress.subject)
                            : fmt::format("{}/{} measurements, {}", done, total, left));
}

void ProgressDisplay::show(const ReplayProgress& progress) {
  const std::string left = time_left(progress.done - progress.kept, progress.steps - progress.done);
  draw_or_tell(progress.done, progress.steps, fmt::format("{}/{} steps{}", progress.done, progress.steps, left));
}

void ProgressDisplay::show(const TuneProgress& progress) {
  const std::optional<double> left_s = progress.seconds_left();
  draw_or_tell(progress.done(), progress.most(),
               fmt::format("{}: {} of {} candidates left, {} steps simulated{}", progress.stage, progress.left,
                           progress.candidates, progress.steps,
                           left_s ? fmt::format(", about {:.0f} s left", std::ceil(*left_s)) : ""));
}

void ProgressDisplay::show(const AdviceProgress& progress) {
  if (Clock::now() - begin_ < short_wait) return;
  draw_or_tell(progress.tried, progress.most,
               fmt::format("{}: {} changes of the study tried", progress.plan, progress.tried));
}

void ProgressDisplay::show(const ProductionProgress& progress) {
  if (Clock::now() - begin_ < short_wait) return;
  const std::int64_t done = thousandths(progress.share);
  draw_or_tell(
      done, whole,
      fmt::format("{} % of the hours, {}{}", 100 * done / whole, progress.what, time_left(done, whole - done)));
}

void ProgressDisplay::show(const ReadingProgress& progress) {
  if (Clock::now() - begin_ < short_wait) return;
  const std::int64_t done = thousandths(progress.share);
  draw_or_tell(done, whole, fmt::format("{} % read{}", 100 * done / whole, time_left(done, whole - done)));
}

void ProgressDisplay::draw_or_tell(std::int64_t done, std::int64_t all, const std::string& text) {
  if (on_terminal_) {
    draw(share_of(static_cast<std::size_t>(done), static_cast<std::size_t>(all)), text);
    return;
  }
  const auto tenths = static_cast<std::size_t>(10 * done / std::max<std::int64_t>(1, all));
  if (tenths <= tenths_told_) return;
  tenths_told_ = tenths;
  note(text);
}

std::string ProgressDisplay::time_left(std::int64_t done, std::int64_t left) const {
  if (done == 0) return "";
  const double elapsed_s = std::chrono::duration<double>(Clock::now() - begin_).count();
  return fmt::format(", about {:.0f} s left",
                     std::ceil(elapsed_s * static_cast<double>(left) / static_cast<double>(done)));
}

void ProgressDisplay::draw(double share, const std::string& text) {
  const auto now = Clock::now();
  if (drawn_ && now - last_ < shortest_pause) return;
  last_ = now;
  drawn_ = true;
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(bar_width));
  draw_line(fmt::format("[{:<{}}] {}", std::string(filled, '#'), bar_width, text));
}

}  // namespace hdpsim::app
