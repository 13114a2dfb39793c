#include "sim/app/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>
#include <sstream>

#include "sim/app/environment.h"
#include "sim/base/check.h"
#include "sim/base/printable.h"

namespace hdpsim::app {
namespace {

constexpr std::string_view bold_red = "\033[1;31m";
constexpr std::string_view green = "\033[1;32m";
constexpr std::string_view plain = "\033[0m";

bool is_caret(const std::string& line) {
  const std::size_t first = line.find_first_not_of(' ');
  return first != std::string::npos && line[first] == '^';
}

std::string painted(const std::string& text, std::size_t from, std::size_t count, std::string_view color) {
  return text.substr(0, from) + std::string(color) + text.substr(from, count) + std::string(plain) +
         text.substr(from + count);
}

// Whether a stream takes colours: it is a terminal that supports them, and NO_COLOR (https://no-color.org) is not set.
bool has_colors() {
  const std::string_view terminal = environment_variable("TERM");
  const bool is_dumb = terminal.empty() || terminal == "dumb";
  return isatty(STDERR_FILENO) == 1 && environment_variable("NO_COLOR").empty() && !is_dumb;
}

std::string colored_problems(const std::string& text) {
  constexpr std::string_view error = "error:";
  std::istringstream lines(text);
  std::string colored;
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find(error); at != std::string::npos && !line.starts_with(' ')) {
      line = painted(line, at, error.size(), bold_red);
    } else if (is_caret(line)) {
      line = painted(line, line.find('^'), 1, green);
    }
    colored += line + '\n';
  }
  return colored;
}

/// While it lives, an unread pipe refuses what this thread writes, but does not end the process.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t waiting;
    sigpending(&waiting);
    was_waiting_ = sigismember(&waiting, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;
  ~WithoutPipeSignal() {
    constexpr timespec now{};
    if (!was_waiting_) (void)sigtimedwait(&pipe_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_waiting_ = false;
};

// The only place that writes to standard error. Refused output is lost.
void tell(std::string_view text) {
  const WithoutPipeSignal quiet;
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

void open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one. A read-only descriptor refuses results.
    const int access = stream == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", access) < 0) (void)open("/", O_RDONLY);
  }
}

void print_bytes(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) != 0 || !written) {
    throw MachineError(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
}

void print(const std::string& text, Format format) {
  format == Format::table ? print_bytes(printable_lines(text)) : print_bytes(text);
}

void note(const std::string& text) {
  tell(printable_lines(text) + '\n');
}

void complain_without_memory(std::string_view text) {
  tell(text);
}

void complain(std::string_view text) {
  const std::string shown = printable_lines(text.ends_with('\n') ? text.substr(0, text.size() - 1) : text);
  if (shown.empty()) return;
  tell(has_colors() ? colored_problems(shown) : shown + '\n');
}

bool can_ask() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

std::optional<std::string> ask(std::string_view question) {
  tell(printable(question));
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  constexpr char blanks[] = " \t\r";
  const std::size_t begin = line.find_first_not_of(blanks);
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_last_not_of(blanks) - begin + 1);
}

void draw_line(std::string_view text) {
  tell("\r" + printable(text) + "\033[K");
}

void clear_line() {
  tell("\r\033[K");
}

}  // namespace hdpsim::app
