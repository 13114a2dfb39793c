#include "sim/explore/server/connection.h"

#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace hdpsim {
namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::string_view head_end = "\r\n\r\n";

bool is_of_ranges(std::string_view line) {
  constexpr std::string_view name = "range:";
  return line.size() >= name.size() && strncasecmp(line.data(), name.data(), name.size()) == 0;
}

// The lines of a head, each with its end, but for those that ask for ranges.
std::string without_ranges(std::string_view head) {
  std::string kept;
  while (!head.empty()) {
    const std::size_t end = head.find(line_end);
    const std::string_view line = head.substr(0, end == std::string_view::npos ? end : end + line_end.size());
    if (!is_of_ranges(line)) kept += line;
    head.remove_prefix(line.size());
  }
  return kept;
}

}  // namespace

bool Connection::receive_head() {
  const Clock::time_point until = deadline();
  std::array<char, 4096> part{};
  std::size_t end = std::string::npos;
  while (end == std::string::npos && received_.size() < most_head_bytes) {
    if (!is_ready(POLLIN, until)) return false;
    const ssize_t count = recv(socket_, part.data(), part.size(), 0);
    if (count <= 0) return false;
    const std::size_t searched = received_.size() - std::min(received_.size(), head_end.size() - 1);
    received_.append(part.data(), static_cast<std::size_t>(count));
    end = received_.find(head_end, searched);
  }
  if (end == std::string::npos) {
    constexpr std::string_view answer =
        "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    (void)write(answer.data(), answer.size());
    return false;
  }
  end += head_end.size();
  received_ = without_ranges(std::string_view(received_).substr(0, end)) + received_.substr(end);
  return true;
}

ssize_t Connection::read(char* to, std::size_t size) {
  if (given_ < received_.size()) {
    const std::size_t count = received_.copy(to, size, given_);
    given_ += count;
    return static_cast<ssize_t>(count);
  }
  return is_ready(POLLIN, deadline()) ? recv(socket_, to, size, 0) : -1;
}

ssize_t Connection::write(const char* from, std::size_t size) {
  return is_writable() ? send(socket_, from, size, MSG_NOSIGNAL) : -1;
}

bool Connection::is_ready(short event, Clock::time_point until) const {
  constexpr int moment_ms = 50;
  do {
    pollfd asked{socket_, event, 0};
    if (poll(&asked, 1, moment_ms) > 0) return true;
  } while (Clock::now() < until && !patience_.is_over());
  return false;
}

}  // namespace hdpsim
